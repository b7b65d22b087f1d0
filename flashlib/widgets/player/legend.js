// What each mark of the player means; only the marks that can be there.

class Legend {
  static key = ({ causal, T, T_r, T_c, learner, sram }) => [
    causal,
    T < T_r * T_c,
    learner && learner.missed.length > 0,
    sram,
  ];

  /** compared: no state of rows is shown, so its marks are not needed. */
  constructor({ causal, T, T_r, T_c, learner, sram: [held, capacity], compared }) {
    const colours = [-1, -0.5, 0, 0.5, 1].map((t) => h("b", { "data-t": t }));
    const item = (state, text) => h("span", {}, h("i", { class: "flash-swatch", "data-state": state }), text);
    this.element = h(
      "p",
      { class: "flash-legend flash-note" },
      item("now", "in SRAM now"),
      item("done", "computed and dropped"),
      item("pending", "to come, or not written yet"),
      T < T_r * T_c && item("skipped", causal ? "skipped: the mask cuts all of it" : "skipped"),
      causal && item("cut", "cut by the mask: score −∞"),
      learner?.missed.length > 0 && item("missed", "missed: it should have been computed"),
      h("span", {}, "−", h("i", { class: "flash-scale" }, ...colours), "+"),
      !compared && h("span", {}, "↑ the maximum grew"),
      !compared && item("before", "before this step"),
      !compared && item("added", "added by this tile"),
      !compared && item("room", "held on chip at most, P in the place of S; the capacity is made up unless given"),
      !compared && held > capacity && item("over", "more than fits; it is played all the same"),
      item("read", "bytes read"),
      item("written", "bytes written"),
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
