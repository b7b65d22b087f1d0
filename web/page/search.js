// Search in all chapters: the index is a script that is loaded for the first search.

import { found, meant, piece } from "./find.js";

/** Load the index, once. */
function load() {
  globalThis.flashSite.loading ??= new Promise((done, fail) => {
    const script = document.createElement("script");
    script.src = String(document.querySelector("#search")?.getAttribute("data-index"));
    script.addEventListener("load", () => done(globalThis.flashSite.index));
    script.addEventListener("error", fail);
    document.head.append(script);
  });
  return globalThis.flashSite.loading;
}

/** An element with children. */
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A result: a link that the arrow keys select and Enter opens. */
function option([kind, address, chapter, heading, text], asked, k) {
  const title = kind === "chapter" ? chapter : `${chapter} · ${heading}`;
  const parts = piece(kind === "chapter" ? `${heading}. ${text}` : text, asked);
  const words = parts.map((part, n) => (n % 2 ? make("mark", {}, part) : part));
  const inside = [make("span", { class: "title" }, title), make("span", { class: "piece" }, ...words)];
  const link = make("a", { id: `search-${k}`, role: "option", href: address, tabindex: "-1" }, ...inside);
  return make("li", { role: "none" }, link);
}

/** Keeps one of the results selected, at first the first one. */
class Results {
  /** @param {HTMLElement} list @param {HTMLInputElement} field */
  constructor(list, field) {
    this.list = list;
    this.field = field;
    this.at = 0;
  }

  show(results, asked) {
    this.list.replaceChildren(...results.map((one, k) => option(one, asked, k)));
    this.list.scrollTop = 0;
    this.field.setAttribute("aria-expanded", String(results.length > 0));
    this.select(0);
  }

  /** @returns {HTMLElement[]} */
  get options() {
    return [...this.list.querySelectorAll("a")];
  }

  select(at) {
    const { options } = this;
    this.at = options.length && (at + options.length) % options.length;
    options.forEach((one, k) => one.setAttribute("aria-selected", String(k === this.at)));
    options[this.at]?.scrollIntoView({ block: "nearest" });
    this.field.setAttribute("aria-activedescendant", options[this.at]?.id ?? "");
  }
}

/** Show the results for the words in the field, and a sentence about them. */
async function look(asked) {
  const index = await load();
  const results = found(index, asked);
  if (results.length || !asked) return { results, asked, sentence: "" };
  const other = meant(index, asked);
  const others = other ? found(index, other) : [];
  if (!others.length) return { results, asked, sentence: "Nothing contains all of these words." };
  return { results: others, asked: other, sentence: `Nothing contains “${asked}”. These are the results for “${other}”.` };
}

function startKeys(field, results, show) {
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.isComposing) return;
    event.preventDefault();
    results.select(results.at + step);
  });
  field.form?.addEventListener("submit", (event) => {
    event.preventDefault();
    void show().then(() => results.options[results.at]?.click());
  });
}

export function startSearch() {
  const dialog = /** @type {HTMLDialogElement | null} */ (document.querySelector("#search"));
  const field = /** @type {HTMLInputElement | null} */ (dialog?.querySelector("input"));
  const list = /** @type {HTMLElement | null} */ (dialog?.querySelector("[role=listbox]"));
  const said = dialog?.querySelector("[role=status]");
  if (!dialog || !field || !list || !said) return;
  const results = new Results(list, field);
  let shown = "";
  const show = async () => {
    const asked = field.value.trim();
    if (asked === shown) return; // and the selection stays
    const now = await look(asked);
    if (asked !== field.value.trim()) return; // more was typed meanwhile
    shown = asked;
    said.textContent = now.sentence;
    results.show(now.results, now.asked);
  };
  startOpening(dialog, field);
  startKeys(field, results, show);
  field.addEventListener("input", () => void show());
  list.addEventListener("click", ({ target }) => target instanceof Element && target.closest("a") && dialog.close());
}

/** The button and the key / open the dialog; its own button and a click outside close it. */
function startOpening(dialog, field) {
  const open = () => {
    dialog.showModal();
    field.select();
    void load();
  };
  document.querySelector("#search-open")?.addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof Element && event.target.closest("input, textarea, select, .flash-widget");
    if (event.key !== "/" || typing || dialog.open || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    open();
  });
  dialog.querySelector("button")?.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}
