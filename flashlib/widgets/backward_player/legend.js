// What each mark of a tile or row means; only marks that can occur. Colours and bars have their own keys.

/** @import { BackwardFrames } from "./frames.js" */
import { h } from "../shared/elements.js";
import { legendOf, mark } from "../flash_player/legend.js";

export class GradientLegend {
  static key = ({ causal, T, T_r, T_c }) => [causal, T < T_r * T_c];

  /** @param {BackwardFrames} frames */
  constructor({ causal, T, T_r, T_c }) {
    this.element = legendOf(
      mark("now", "in SRAM now"),
      mark("done", "recomputed and dropped"),
      mark("pending", "to come, or not written yet"),
      T < T_r * T_c && mark("skipped", "skipped: the mask cuts all of it"),
      causal && mark("cut", "cut by the mask: score −∞"),
      h("span", {}, "▸ the row described in words: click one, or use the up and down arrows"),
    );
  }

  take() {}
}
