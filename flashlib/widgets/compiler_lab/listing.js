// The listings of a compiled kernel, as text.

/** @import { Listed, Result } from "./types.js" */
import { choice } from "../shared/controls.js";
import { h, note, setText } from "../shared/elements.js";
import { isSaved } from "../shared/widget.js";

const KINDS = [
  ["ttgir", "TTGIR", "Triton's: tiles and their layouts"],
  ["ptx", "PTX", "one thread, with as many registers as it likes"],
  ["sass", "SASS", "what the GPU runs"],
  ["amdgcn", "AMDGCN", "what the GPU runs"],
]; // of NVIDIA's GPUs, and the last of AMD's
const INDENT = 2; // ch, of the continuation of a line that does not fit
/**
 * A line of code; what does not fit continues below, indented.
 * @param {"mark" | "b" | "span"} tag
 * @param {string} line
 */
function lineOf(tag, line) {
  const deep = line.length - line.trimStart().length + INDENT;
  return h(tag, { class: "flash-compiler-line", style: `padding-left:${deep}ch;text-indent:-${deep}ch` }, `${line}\n`);
}
const lines = (n) => `${n.toLocaleString("en")} ${n === 1 ? "line" : "lines"}`;

/**
 * The loop of a listing, in a box that scrolls, and the whole listing in a fold. `ask(kind)` requests the whole when the
 * fold is opened; `lost` says whether Python no longer answers.
 */
export class Listing {
  /** @type {Result["listings"]} */
  listings;
  /** @type {number} */
  number;
  /** @type {string | null} the instruction whose lines are marked */
  marked = null;

  /**
   * @param {(kind: string) => void} ask
   * @param {() => boolean} lost
   */
  constructor(ask, lost) {
    this.ask = ask;
    this.lost = lost;
    this.kind = "ttgir";
    this.choice = choice("listing", "listing", KINDS, (kind) => this.#choose(kind));
    this.choice.show(this.kind);
    this.loop = h("pre", { tabindex: 0, role: "group" });
    this.whole = h("pre", { tabindex: 0, role: "group" });
    this.size = note();
    this.none = h("p", {});
    this.summary = h("summary", {});
    this.fold = h("details", { ontoggle: () => this.#unfold() }, this.summary, this.whole);
    const title = h("span", { class: "flash-compiler-title" }, h("h3", {}, "The loop over tiles"), this.size);
    this.element = h(
      "section",
      { class: "flash-panel flash-compiler-listing" },
      h("header", {}, title, this.choice.element),
      this.none,
      this.loop,
      this.fold,
    );
  }

  /** @param {Result} result */
  draw({ listings, number }) {
    this.marked = null;
    this.listings = listings;
    this.number = number;
    const offered = Object.keys(listings);
    const labels = this.choice.element.querySelectorAll("label");
    KINDS.forEach(([kind], k) => (labels[k].hidden = !offered.includes(kind)));
    this.#choose(offered.includes(this.kind) ? this.kind : offered[offered.length - 1]);
  }

  /**
   * Mark the lines of an instruction, in the listing that is shown if it has any, else in the last one that has; the second
   * time, remove the marks.
   * @param {string} name
   */
  mark(name) {
    this.marked = this.marked === name ? null : name;
    const having = Object.keys(this.listings).filter((kind) => name in this.listings[kind].counted);
    this.#choose(!this.marked || having.includes(this.kind) ? this.kind : having[having.length - 1]);
    const first = this.loop.querySelector("mark");
    if (first instanceof HTMLElement) this.loop.scrollTop = first.offsetTop - this.loop.offsetTop - 20;
  }

  /** Show a whole listing that Python sent, unless something newer is shown here. */
  hear({ kind, number }, [bytes]) {
    const mine = this.fold.open && kind === this.kind && number === this.number; // another view may have requested it
    if (mine) setText(this.whole, new TextDecoder().decode(bytes));
  }

  /** @param {string} kind */
  #choose(kind) {
    this.kind = kind;
    this.choice.show(kind);
    const listing = this.listings[kind];
    const [name, all] = [kind.toUpperCase(), listing.lines[1]];
    this.#showLoop(name, listing);
    setText(this.none, all ? "It has no loop over tiles." : "No disassembler was found, so there is no SASS.");
    this.none.hidden = !this.loop.hidden;
    this.fold.hidden = !all || isSaved();
    setText(this.summary, `All ${lines(all)} of ${name}`);
    this.whole.ariaLabel = `all of ${name}`;
    this.#unfold();
  }

  /**
   * @param {string} name
   * @param {Listed} listing
   */
  #showLoop(name, { loop, counted, lines: [count] }) {
    const bold = new Set(Object.values(counted).flat());
    const marked = new Set(counted[this.marked ?? ""]);
    let size = loop && `${lines(count)} of ${name}`;
    if (loop && marked.size) size = `${size}; ${lines(marked.size)} of ${this.marked} marked`;
    else if (loop && bold.size) size = `${size}; what is counted above is bold`;
    setText(this.size, size);
    this.loop.hidden = !loop;
    this.loop.ariaLabel = `the loop in ${name}`;
    const look = (n) => (marked.has(n) ? "mark" : bold.has(n) ? "b" : "span");
    this.loop.replaceChildren(...loop.split("\n").map((line, n) => lineOf(look(n), line)));
    this.loop.scrollTop = 0;
  }

  #unfold() {
    setText(this.whole, this.lost() ? "Run the cell again to see it." : "Waiting for Python ...");
    if (this.fold.open && !this.fold.hidden && !this.lost()) this.ask(this.kind);
  }
}
