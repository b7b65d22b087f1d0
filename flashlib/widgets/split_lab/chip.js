/** @import { Result } from "./types.js" */
import { div, h, note, panel, setSentence, setText, svg } from "../shared/elements.js";
import { counted } from "../shared/language.js";
import { between } from "../shared/number_text.js";
import { watchRoom } from "./axes.js";

const SM = { wide: 16, high: 13, gap: 2 }; // px, of a multiprocessor

/** The multiprocessors of the GPU, each with its places for programs, filled by a wave of the call. */
export class Chip {
  /** @type {Result} */
  sent;
  /** @type {number} */
  room;

  constructor() {
    this.wave = 0;
    this.svg = svg("svg", { role: "img", class: "flash-split-chip" });
    const button = (by, sign, label) =>
      h(
        "button",
        { type: "button", class: "flash-button", "aria-label": label, title: label, onclick: () => this.#step(by) },
        sign,
      );
    this.buttons = [button(-1, "◀", "previous wave"), button(1, "▶", "next wave")];
    this.where = note();
    this.title = h("span", {});
    const swatch = (kind) => h("i", { class: `flash-split-swatch flash-split-swatch-${kind}` });
    this.holds = h("span", {});
    const keys = [h("span", {}, swatch("free"), this.holds), h("span", {}, swatch("busy"), "program")];
    const legend = div("flash-legend flash-note", keys);
    this.stepper = div("flash-split-stepper", this.where, this.buttons);
    this.words = h("p", {});
    this.product = h("p", { class: "flash-note" });
    const room = div("flash-split-room", this.svg);
    this.element = panel("split-gpu", this.title, this.stepper, room, legend, this.product, this.words);
    this.resized = watchRoom(room, this, () => this.#drawWave());
  }

  #step(by) {
    this.wave = between(0, this.wave + by, this.sent.chip.waves - 1);
    this.#drawWave();
  }

  /** @param {Result} sent */
  draw(sent) {
    this.sent = sent;
    this.wave = 0;
    const { chip, setting, n } = sent;
    setText(this.title, `${setting.gpu}: ${chip.sms} multiprocessors`);
    const [sequences, heads] = [counted(setting.B, "sequence", "sequences"), counted(setting.H_k, "head", "heads")];
    const product = `${sequences} × ${heads} × ${counted(n, "part", "parts")}`;
    setText(this.product, `${product} = ${counted(chip.programs, "program", "programs")}`);
    setText(this.holds, `multiprocessor, room for ${counted(chip.at_a_time, "program", "programs")}`);
    setSentence(this.words, sent.words[1]);
    this.#drawWave();
  }

  #drawWave() {
    if (!this.room || !this.sent) return;
    const { sms, at_a_time, places, waves, last } = this.sent.chip;
    const running = this.wave < waves - 1 ? places : last;
    const columns = Math.max(1, Math.floor((this.room + SM.gap) / (SM.wide + SM.gap)));
    const height = Math.ceil(sms / columns) * (SM.high + SM.gap);
    const width = (SM.wide - 2) / at_a_time;
    let [frames, programs] = ["", ""];
    for (let k = 0; k < sms; k++) {
      const [x, y] = [(k % columns) * (SM.wide + SM.gap), Math.floor(k / columns) * (SM.high + SM.gap)];
      frames += `M${x + 0.5} ${y + 0.5}h${SM.wide - 1}v${SM.high - 1}h${1 - SM.wide}z`;
      const its = Math.floor(running / sms) + Number(k < running % sms);
      for (let p = 0; p < its; p++) programs += `M${x + 1.5 + p * width} ${y + 2}h${width - 1}v${SM.high - 4}h${1 - width}z`;
    }
    const path = (name, d) => svg("path", { class: `flash-split-${name}`, d });
    this.svg.setAttribute("viewBox", `0 0 ${this.room} ${height}`);
    this.svg.setAttribute("height", height);
    this.svg.replaceChildren(path("frames", frames), path("programs", programs));
    const busy = Math.min(running, sms);
    this.svg.setAttribute("aria-label", `${running} programs on ${busy} of ${sms} multiprocessors`);
    this.element.dataset.running = String(running);
    setText(this.where, `wave ${this.wave + 1} of ${waves}`);
    this.stepper.hidden = waves === 1;
    this.buttons.forEach((button, k) => button.setAttribute("aria-disabled", this.wave === (k ? waves - 1 : 0)));
  }
}
