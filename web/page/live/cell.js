// A cell whose code a reader can change and run.

import { editor, rewrite } from "./editor.js";
import { printed, showOutputs } from "./outputs.js";
import { Ended } from "./python.js";
import { write } from "./written.js";

const AGAIN = "Python was restarted, and the cells that are needed run again automatically.";

const STARTS = "Python is starting; the first time, it is downloaded.";

/** @param {string} text @param {() => void} press */
export function tool(text, press) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
  button.addEventListener("click", press);
  return button;
}

/** How long something took, in words. */
const took = (ms) => (ms < 1000 ? `${Math.max(1, Math.round(ms))} ms` : `${(ms / 1000).toFixed(1)} s`);

export class Cell {
  /**
   * @param {HTMLElement} root
   * @param {any} page
   * @param {string | undefined} written what the reader wrote there earlier
   */
  constructor(root, page, written) {
    this.root = root;
    this.page = page;
    this.id = String(root.dataset.cell);
    this.code = /** @type {HTMLElement} */ (root.querySelector(".code"));
    this.original = String(this.code.textContent).replace(/\n+$/, "");
    this.outputs = /** @type {HTMLElement} */ (root.querySelector(":scope > .outputs"));
    this.stored = [...this.outputs.childNodes];
    this.pictures = [...this.outputs.querySelectorAll(".plot, .still img")];
    this.isStub = root.matches(".stub");
    this.isCheck = root.matches(".check");
    this.runs = tool(this.isCheck ? "Check" : "Run", () => void this.run());
    this.edits = tool("Edit", () => this.edit(this.original)?.focus());
    this.resets = tool("Original", () => this.reset());
    this.said = Object.assign(document.createElement("span"), { className: "said" });
    this.#addTools();
    if (this.isStub || written !== undefined) this.edit(written ?? this.original);
  }

  /** Its current text. */
  get text() {
    return this.field ? this.field.value.replace(/\n+$/, "") : this.original;
  }

  get isChanged() {
    return this.text !== this.original;
  }

  #addTools() {
    this.resets.hidden = true;
    this.said.setAttribute("role", "status");
    const tools = Object.assign(document.createElement("div"), { className: "tools" });
    if (!this.isStub) tools.append(this.runs);
    if (!this.isStub && !this.isCheck) tools.append(this.edits);
    tools.append(this.resets, this.said);
    this.code.after(tools);
    const first = this.original.split("\n")[0];
    for (const button of [this.runs, this.edits, this.resets])
      button.setAttribute("aria-label", `${button.textContent}: ${first.slice(0, 60)}`);
  }

  /** Show a text in an editor in place of the code. */
  edit(text) {
    if (this.field) return this.field;
    const label = this.isStub ? "your answer" : "code of this cell";
    const { element, field } = editor(text, label, () => void (this.isStub ? this.page.checkOf(this) : this)?.runInView());
    this.typing = element;
    this.field = field;
    this.field.addEventListener("input", () => this.#keep());
    this.code.hidden = true;
    this.code.before(element);
    for (let fold = this.root.querySelector("details.folded"); fold && this.isChanged; fold = null)
      /** @type {HTMLDetailsElement} */ (fold).open = true;
    this.edits.hidden = true;
    this.#keep();
    return this.field;
  }

  /** Store what was written, unless it is the original. */
  #keep() {
    this.resets.hidden = this.isStub ? !this.isChanged : !this.field;
    write(this.page.chapter, (cells) => {
      if (this.isChanged) cells[this.id] = this.text;
      else delete cells[this.id];
    });
    this.page.changed();
  }

  /** Restore the original code and the stored outputs. */
  reset() {
    if (!this.field) return;
    rewrite(this.field, this.original);
    if (!this.isStub) {
      this.typing?.remove();
      this.field = undefined;
      Object.assign(this.code, { hidden: false });
      this.edits.hidden = false;
      this.resets.hidden = true;
      this.outputs.replaceChildren(...this.stored);
    }
    this.said.textContent = "";
    (this.isStub ? this.field : this.edits)?.focus();
  }

  /** Run it, and show its outputs. */
  async run() {
    if (this.busy) return;
    this.busy = true;
    this.root.setAttribute("aria-busy", "true");
    this.said.textContent = this.page.python.ready ? "" : STARTS;
    const start = performance.now();
    try {
      await this.#show(await this.#answer(), start);
    } catch (error) {
      this.outputs.replaceChildren(printed(error.message, "raises"));
      this.said.textContent = error instanceof Ended && error.anew ? AGAIN : "";
    }
    this.busy = false;
    this.root.removeAttribute("aria-busy");
    this.root.dataset.ran = String(Number(this.root.dataset.ran ?? 0) + 1);
  }

  /** Run it from an editor, perhaps one above, and scroll to what it says. */
  async runInView() {
    await this.run();
    const shown = this.outputs.firstElementChild ? this.outputs : this.root;
    shown.scrollIntoView({ block: shown.offsetHeight > innerHeight / 2 ? "start" : "nearest" });
  }

  /** Return its outputs. A check that was stopped runs again in a new worker, which reports that it was stopped. */
  async #answer() {
    try {
      return await this.page.python.run(this.id);
    } catch (error) {
      if (!(error instanceof Ended && this.isCheck && error.at !== undefined)) throw error;
      this.said.textContent = AGAIN;
      const answer = await this.page.python.run(this.id, [error.message, error.at]);
      return { ...answer, anew: true };
    }
  }

  async #show(answer, start) {
    const failed = answer.first.find(({ raised }) => raised);
    const { pictures, isChanged, page, id } = this;
    this.root.dataset.outcome = answer.outputs.findLast(({ verdict }) => verdict)?.verdict.outcome ?? "";
    if (failed) this.#fail(failed);
    else await showOutputs(this.outputs, answer.outputs, { pictures, isChanged, python: page, cell: id });
    this.said.textContent = `${this.#words(answer, performance.now() - start)}.${answer.anew ? ` ${AGAIN}` : ""}`;
  }

  /** A cell above, which this one needs, did not finish. */
  #fail({ cell, raised }) {
    const link = Object.assign(document.createElement("a"), { href: `#cell-${cell}` });
    link.textContent = "This cell needs a cell above that did not finish:";
    const words = document.createElement("p");
    words.append(link);
    this.outputs.replaceChildren(words, printed(raised, "raises"));
  }

  #words({ first }, ms) {
    if (!first.length) return `Ran here in ${took(ms)}`;
    const cells = first.length === 1 ? "a cell above that it needs" : `${first.length} cells above that it needs`;
    return `Ran here in ${took(ms)}, with ${cells}`;
  }
}
