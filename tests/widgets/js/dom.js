// As much of a page as a widget needs to be drawn without a browser: elements, their attributes and their texts.

import assert from "node:assert/strict";

class Text {
  constructor(data) {
    this.data = data;
  }

  get textContent() {
    return this.data;
  }
}

class Element {
  constructor(tag) {
    Object.assign(this, { tag, attributes: new Map(), children: [], dataset: {}, style: { setProperty() {} } });
    const set = (name, on) => this.attributes.set("class", [...this.names.filter((one) => one !== name), ...(on ? [name] : [])].join(" "));
    this.classList = { add: (name) => set(name, true), toggle: (name, on = !this.names.includes(name)) => set(name, on) };
  }

  get names() {
    return (this.attributes.get("class") ?? "").split(" ").filter(Boolean);
  }

  set className(names) {
    this.attributes.set("class", names);
  }

  setAttribute(name, value) {
    this.attributes.set(name, String(value));
  }

  getAttribute(name) {
    return this.attributes.get(name) ?? null;
  }

  addEventListener(kind, heard) {
    this[kind] = heard;
  }

  append(...children) {
    this.children.push(...children.map((child) => (typeof child === "object" ? child : new Text(String(child)))));
  }

  appendChild(child) {
    this.append(child);
    return child;
  }

  replaceChildren(...children) {
    this.children = [];
    this.append(...children);
  }

  get firstChild() {
    return this.children[0] ?? null;
  }

  get lastChild() {
    return this.children.at(-1) ?? null;
  }

  get textContent() {
    return this.children.map((child) => child.textContent).join("");
  }

  set textContent(text) {
    this.replaceChildren(text);
  }
}

/** The elements inside one that have a class, or an attribute with this value. */
export function within(element, name, value) {
  const isIt = (one) => (value === undefined ? one.names.includes(name) : one.getAttribute(name) === value);
  return element.children.filter((child) => child instanceof Element).flatMap((one) => [...(isIt(one) ? [one] : []), ...within(one, name, value)]);
}

/** A motion in which nothing moves. */
export const STILL = { time: 0, from() {}, play() {} };

/** The numbers of a path or of a style. */
export const numbersIn = (text) => (text.match(/-?\d+(\.\d+)?(e-?\d+)?/g) ?? []).map(Number);

/** Fail unless a size is right, up to what a page rounds. */
export const near = (a, b, by = 0.02) => assert.ok(Math.abs(a - b) <= by, `${a}, not ${b}`);

globalThis.document = { createElement: (tag) => new Element(tag), createElementNS: (_, tag) => new Element(tag) };
globalThis.Text = Text;
globalThis.ResizeObserver = class {
  observe() {}
};
