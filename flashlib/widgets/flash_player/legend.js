// The meaning of marks that are not explained where they appear.

/** @import { Learner } from "./types.js" */
import { h } from "../shared/elements.js";

/**
 * A mark as drawn by the style sheet, and its meaning.
 * @param {string} state
 * @param {string} text
 */
export const mark = (state, text) => h("span", {}, h("i", { class: "flash-swatch", "data-state": state }), text);

export const scaleMark = () =>
  h(
    "span",
    {},
    "−",
    h("i", { class: "flash-scale" }, ...[-1, -0.5, 0, 0.5, 1].map((t) => h("b", { "data-t": t }))),
    "+",
  );

/** @param {...any} marks */
export const legendOf = (...marks) => h("p", { class: "flash-legend flash-note" }, marks);

export class Legend {
  static key = ({ learner, sram }) => [Boolean(learner), sram];

  /**
   * compared: no rows' state is shown, so its marks are not needed.
   * @param {{ learner: Learner | null, sram: number[], compared?: boolean }} frames
   */
  constructor({ learner, sram: [held, capacity], compared }) {
    this.element = legendOf(
      scaleMark(),
      mark("read", "read"),
      mark("written", "written"),
      mark("pending", "not written yet"),
      !compared && h("span", {}, "↑ the maximum grew"),
      !compared && held > capacity && mark("over", "more than fits; it is played anyway"),
      learner && h("span", {}, "≠ the true value"),
    );
  }

  take() {}
}
