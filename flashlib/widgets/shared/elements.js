// What the widgets are made of: elements of the page. Python joins the files of shared/ with the widget's own, so
// nothing is exported.

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const div = (name, ...children) => h("div", { class: name }, ...children);

const note = (...children) => h("span", { class: "flash-note" }, ...children);

/** A name such as "B_r" or "Q_i" as an element, with what follows the underscore set lower. */
function symbol(name) {
  const [letter, index] = name.split("_");
  return h("span", { class: "flash-symbol" }, letter, index && h("sub", {}, index));
}

const panel = (name, title, note, ...children) =>
  h("section", { class: `flash-panel flash-${name}` }, h("header", {}, h("h3", {}, title), note), ...children);

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
