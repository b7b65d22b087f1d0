// CompilerLab: what the compiler makes of a kernel. Python compiles; this file sends requests, shows results, and says what
// it is waiting for.

/** @import { Result, Traits, Work } from "./types.js" */
import { div, h, headline, setSentence, typeset } from "../shared/elements.js";
import { Widget } from "../shared/widget.js";
import { controlsOf } from "./controls.js";
import { Listing } from "./listing.js";
import { Status } from "./status.js";
import { Instructions, Takes } from "./tables.js";

/** @extends {Widget<Traits>} */
class CompilerLab extends Widget {
  /** @type {ReturnType<typeof controlsOf>} */
  controls;
  /** @type {Status} */
  status;
  /** @type {Listing} */
  listing;
  /** @type {[Takes, Instructions, Listing]} */
  parts;
  head = headline("What the compiler makes of a kernel");
  /** @type {HTMLElement} */
  title;
  /** @type {HTMLElement} */
  verdicts;
  /** @type {HTMLElement} */
  body;
  /** @type {Work | undefined} */
  work;
  /** @type {number | undefined} */
  number;

  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "compiler-lab", "what the compiler makes of a kernel");
    if (!this.model.get("problem")) this.#build();
    this.start("work");
  }

  #build() {
    const tell = (message) => this.model.send(message);
    this.controls = controlsOf(this.model.get("offered"), (settings) => this.ask(settings));
    const doing = {
      cancel: () => tell({ ask: "cancel" }),
      again: () => tell({ ask: "again" }),
      back: () => this.ask(this.model.get("result").asked),
    };
    const lost = () => this.off;
    this.status = new Status(doing, lost);
    this.listing = new Listing((kind) => tell({ ask: "listing", kind }), lost);
    const instructions = new Instructions((name) => {
      this.listing.mark(name);
      instructions.press(this.listing.marked);
    });
    this.parts = [new Takes(), instructions, this.listing];
    const [takes] = this.parts;
    this.title = h("p", { class: "flash-strong" });
    this.verdicts = div("flash-compiler-verdicts");
    this.body = div(
      "flash-compiler-shown",
      div("flash-panel flash-words", this.title, this.verdicts),
      div("flash-compiler-columns", takes.element, instructions.element),
      this.listing.element,
    );
    const { kernel, capability, d, dtype, causal, ...tile } = this.controls;
    const row = (...controls) => div("flash-controls", controls.map(({ element }) => element));
    this.root.append(
      this.head.element,
      div(
        "flash-panel flash-header",
        this.settings(row(kernel, capability, d, dtype, causal), row(...Object.values(tile))),
        this.status.element,
      ),
      this.body,
    );
    const heard = (message, buffers) => this.listing.hear(message, buffers);
    this.model.on("msg:custom", heard);
    this.stops.push(
      () => this.model.off("msg:custom", heard),
      () => this.status.stop(),
    );
  }

  /** @param {Work} work */
  load(work) {
    const [result, fresh] = [this.model.get("result"), this.work !== undefined];
    const there = "title" in result;
    this.work = work;
    this.#showSettings();
    this.status.show(work, fresh, there);
    this.body.hidden = !there;
    if (!there) return;
    const now = work.state === "done";
    const made = "Here is what a thread of it needs and runs. Choose another kernel, GPU or tile, and it is compiled again.";
    setSentence(this.head.now, now ? made : "Here is the last one that was compiled, and above it what was chosen since.");
    this.body.classList.toggle("flash-compiler-old", !now);
    setSentence(this.title, now ? result.title : `What is shown is for ${result.title}`);
    if (result.number !== this.number) this.#draw(result);
    if (now) this.spoken.say([result.title, ...result.verdicts.map(({ text }) => text)].join(" "));
  }

  /** Show the requested settings, and disable those that the kernel does not take. */
  #showSettings() {
    const kernel = this.model.get("kernel");
    const taken = this.model.get("offered").kernel.find(([name]) => name === kernel)?.[2];
    /** @type {Model<any>} */
    const model = this.model; // any name
    /** @type {[string, { control: { disabled: boolean }, show: (value: any) => void }][]} */
    const controls = Object.entries(this.controls);
    for (const [name, { control, show }] of controls) {
      show(model.get(name));
      control.disabled = taken !== undefined && !taken.includes(name);
    }
  }

  /** @param {Result} result */
  #draw(result) {
    this.number = result.number;
    const verdict = ({ text, bad }) =>
      h("p", {}, bad && h("span", { class: "flash-compiler-bad" }, "▲ "), typeset(text));
    this.verdicts.replaceChildren(...result.verdicts.map(verdict));
    for (const part of this.parts) part.draw(result);
  }

  paint() {} // all colours are in the style sheet

  draw() {}
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const lab = new CompilerLab(context);
    return () => lab.stop();
  },
};
