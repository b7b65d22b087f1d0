/** @import { Result } from "./types.js" */
import { div, h, note, put, setText, symbol, typeset } from "../shared/elements.js";
import { between, exact, number } from "../shared/number_text.js";
import { exps } from "./table.js";

const LIMITS = { smallest: "smallest", normal: "normal from", largest: "largest", one: "exp(0)\u00a0=" };

/** One line of the picture: a bar from 1 to the naive term, a diamond at the safe one, and flags for what is off it. */
class Bar {
  constructor(label, name) {
    this.label = h("div", { class: "flash-overflow-label" }, label);
    this.bar = h("i", { class: "flash-overflow-bar" });
    this.diamond = h("i", { class: "flash-overflow-diamond" });
    this.low = h("span", { class: "flash-overflow-flag flash-overflow-flag-low" });
    this.high = h("span", { class: "flash-overflow-flag flash-overflow-flag-high" });
    this.element = h("div", { class: "flash-overflow-track" }, this.bar, this.diamond, this.low, this.high);
    this.element.dataset.name = name;
  }

  draw(place, naive, safe, mark) {
    const [left, right] = [place(naive), place(0)].sort((a, b) => a - b);
    this.bar.style.left = `${left}%`;
    this.bar.style.width = `${right - left}%`;
    this.diamond.style.left = `${place(safe)}%`;
    put(this.element, "data-mark", mark);
    setText(this.high, mark === "overflow" ? "▲ inf" : "");
    setText(this.low, mark === "underflow" ? "▼ 0" : "");
  }
}

/** The terms of n scores and their sum on an axis of all numbers of the format, under the slider of x. */
export class Axis {
  constructor(n, controls, range) {
    const names = Array.from({ length: n }, (_, j) => `x_${j + 1}`);
    this.bars = names.map((name) => new Bar(exps(symbol(name)), name));
    this.bars.push(new Bar([note("sum"), " ", symbol("l")], "l"));
    const zone = (name) => h("i", { "data-zone": name });
    this.zones = { low: zone("low"), subnormal: zone("subnormal"), normal: zone("normal"), high: zone("high") };
    this.one = h("i", { class: "flash-overflow-one" });
    this.limits = Object.keys(LIMITS).map((name) => ({ name, label: h("span", { "data-limit": name }) }));
    const zones = Object.values(this.zones);
    const picture = div(
      "flash-overflow-picture",
      div("flash-overflow-label", symbol("x")),
      h("fieldset", { class: "flash-settings flash-overflow-slide" }, range),
      h("div", { class: "flash-overflow-zones", style: `grid-row:2 / span ${n + 1}` }, zones, this.one),
      this.bars.map((bar, k) => {
        for (const element of [bar.label, bar.element]) element.style.gridRow = String(k + 2);
        return [bar.label, bar.element];
      }),
      div("flash-overflow-axis", this.limits.map(({ label }) => label)),
    );
    this.element = h("section", { class: "flash-panel" }, controls, picture);
    this.element.classList.toggle("flash-overflow-many", n > 6);
  }

  /**
   * @param {Result} sent
   * @param {Record<string, any>} columns
   */
  draw({ range, shift, limits, marks, n }, columns) {
    const [low, high] = range.map((end) => end + shift);
    const place = (log) => between(0, (100 * (log - low)) / (high - low), 100);
    this.#drawZones(place, limits);
    this.bars.slice(0, n).forEach((bar, j) => bar.draw(place, columns.x[j], columns.shifted[j], marks.e[j]));
    this.bars[n].draw(place, columns.log_l, columns.log_l_safe, marks.l[0]);
  }

  #drawZones(place, limits) {
    const [smallest, normal, largest] = ["smallest", "normal", "largest"].map((name) => place(limits[name][0]));
    const zones = {
      low: [0, smallest],
      subnormal: [smallest, normal],
      normal: [normal, largest],
      high: [largest, 100],
    };
    for (const [name, [left, right]] of Object.entries(zones))
      Object.assign(this.zones[name].style, { left: `${left}%`, width: `${right - left}%` });
    this.one.style.left = `${place(0)}%`;
    for (const { name, label } of this.limits) {
      const [log, value] = limits[name] ?? [0, 1];
      label.style.left = `${place(log)}%`;
      const text = Number.isInteger(value) && value < 1e6 ? String(value) : number(value);
      setText(label, `${LIMITS[name]} ${text}`);
      put(label, "title", exact(value));
    }
  }
}

/** What the marks of the picture and of the table mean. */
export function marksLegend() {
  const item = (mark, ...text) => h("span", {}, mark, h("span", {}, text));
  const swatch = (name, zone) => h("i", { class: `flash-overflow-swatch ${name}`, "data-zone": zone });
  return div(
    "flash-legend flash-note",
    item(swatch("flash-overflow-bar"), typeset("naive: exp(x_j) from 1, log axis")),
    item(swatch("flash-overflow-diamond"), typeset(`safe: ${"exp(x_j − m)"}`)),
    item(swatch("", "high"), "no numbers there"),
    item(swatch("", "subnormal"), "subnormal: digits are lost"),
    item(h("span", { class: "flash-overflow-cross" }, "✕"), "wrong by more than rounding"),
  );
}
