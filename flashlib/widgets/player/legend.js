// What each mark of the player means; only the marks that can be there.

/** A mark as the style sheet draws it, and what it means. */
const mark = (state, text) => h("span", {}, h("i", { class: "flash-swatch", "data-state": state }), text);

const scaleMark = () =>
  h(
    "span",
    {},
    "−",
    h("i", { class: "flash-scale" }, ...[-1, -0.5, 0, 0.5, 1].map((t) => h("b", { "data-t": t }))),
    "+",
  );

const legendOf = (...marks) => h("p", { class: "flash-legend flash-note" }, marks);

class Legend {
  static key = ({ causal, T, T_r, T_c, learner, sram }) => [
    causal,
    T < T_r * T_c,
    learner && learner.missed.length > 0,
    sram,
  ];

  /** compared: no state of rows is shown, so its marks are not needed. */
  constructor({ causal, T, T_r, T_c, learner, sram: [held, capacity], compared }) {
    this.element = legendOf(
      mark("now", "in SRAM now"),
      mark("done", "computed and dropped"),
      mark("pending", "to come, or not written yet"),
      T < T_r * T_c && mark("skipped", causal ? "skipped: the mask cuts all of it" : "skipped"),
      causal && mark("cut", "cut by the mask: score −∞"),
      learner?.missed.length > 0 && mark("missed", "missed: it should have been computed"),
      scaleMark(),
      !compared && h("span", {}, "↑ the maximum grew"),
      !compared && mark("before", "before this step"),
      !compared && mark("added", "added by this tile"),
      !compared && mark("room", "held on chip at most, P in the place of S; the capacity is made up unless given"),
      !compared && held > capacity && mark("over", "more than fits; it is played all the same"),
      mark("read", "bytes read"),
      mark("written", "bytes written"),
      learner && h("span", {}, "≠ the true value"),
    );
  }

  take() {}
}

/** Give the legend's scale its colours. */
function paintScale(root, colour) {
  for (const b of root.querySelectorAll(".flash-scale b"))
    b.style.backgroundColor = colour.css(Number(b.dataset.t), 1);
}
