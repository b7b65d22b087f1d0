// How far the gradients are from exact ones, over the steps.

const CURVE = { width: 1000, height: 100 }; // units of the picture, which takes the room that there is

class ErrorCurve {
  static key = () => Math.random(); // all of it depends on the steps

  constructor(frames) {
    this.frames = frames;
    const { T, numbers, errors, peaks, gradients, pass } = frames;
    const [x, y] = [
      (tiles) => (CURVE.width * tiles) / Math.max(T, 1),
      (error) => CURVE.height * (1 - error / (peaks.error || 1)),
    ];
    const points = (pairs) =>
      pairs
        .filter(([, error]) => Number.isFinite(error))
        .map(([tiles, error], n) => `${n ? "L" : "M"}${x(tiles)} ${y(error)}`)
        .join("");
    const at = (name, k) => numbers[errors[name] + k];
    const whole = Array.from({ length: T + 1 }, (_, k) => [k, at("whole", k)]);
    const blocks = frames.steps.map((step, k) => {
      const end = [k + 1, at("after", k)];
      return points(step.first ? [[k, at("before", k)], end] : [[k, at("after", k - 1)], end]);
    });
    this.now = svg("path", { class: "flash-now" });
    const names = [...gradients].sort().join(" and ");
    const picture = svg(
      "svg",
      {
        class: "flash-curve",
        viewBox: `0 0 ${CURVE.width} ${CURVE.height}`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": `error of ${names} over ${counted(T, "step")}`,
      },
      svg("path", { class: "flash-whole", d: points(whole) }),
      svg("path", { class: "flash-block", d: blocks.join("") }),
      this.now,
    );
    this.values = {};
    const line = (name, text) => {
      this.values[name] = h("output", { "aria-live": "off", "data-name": `error-${name}` });
      const swatch = svg("svg", { class: "flash-curve flash-stroke", viewBox: "0 0 20 8", "aria-hidden": "true" });
      swatch.append(svg("path", { class: `flash-${name}`, d: "M0 4H20" }));
      return h("div", { class: "flash-error" }, swatch, h("span", {}, text), this.values[name]);
    };
    const symbols = [...gradients].sort().map((name) => symbol(`${name}_${pass.index}`));
    this.indices = symbols.map((element) => element.querySelector("sub"));
    const block = symbols.flatMap((element, k) => (k ? [" and ", element] : element));
    this.element = panel(
      "errors",
      "Error",
      note("to exact gradients"),
      line("block", block),
      line("whole", `all of ${names}`),
      div(
        "flash-chart",
        h("span", { class: "flash-note flash-top" }, number(peaks.error)),
        h("span", { class: "flash-note flash-bottom" }, "0"),
        picture,
        h("span", { class: "flash-note flash-left" }, "0"),
        h("span", { class: "flash-note flash-middle" }, "tiles added"),
        h("span", { class: "flash-note flash-right" }, String(T)),
      ),
    );
    this.x = x;
  }

  take(frames) {
    this.frames = frames;
  }

  draw(at) {
    const { pass } = this.frames;
    const { block, whole, tiles } = this.frames.error(at);
    const index = at.step ? at.step[pass.index] : pass.index;
    this.indices.forEach((element) => setText(element, String(index)));
    for (const [name, error] of Object.entries({ block, whole })) {
      setText(this.values[name], error === undefined ? "" : number(error));
      this.values[name].title = error === undefined ? "" : exact(error);
    }
    this.now.setAttribute("d", `M${this.x(tiles)} 0V${CURVE.height}`);
  }
}
