// What to look at first: three callouts, shown until the learner dismisses them for good.

/** @import { Transport } from "../shared/transport.js" */
import { div, h, setText } from "../shared/elements.js";

const GUIDED = "flashlib.guided"; // in the browser's storage

/** Devices without a mouse seldom have a keyboard. */
const isTouched = () => matchMedia("(hover: none)").matches;

const play = {
  about: ".flash-play",
  stand: (root, callout) => root.querySelector(".flash-header").append(callout),
  words: () => `${isTouched() ? "Tap play" : "Press play, or the space bar"}. Every step computes one tile of S.`,
};
const alpha = "Watch alpha: where a row's maximum grows, all that it has summed so far shrinks by this factor.";

/**
 * For each callout its target, its place on the page next to the target and never on it, and its text: with all panels,
 * and with less.
 */
const CALLOUTS = {
  all: [
    play,
    {
      about: ".flash-part-chip",
      stand: (root, callout) => root.querySelector(".flash-part-memory").append(callout),
      words: () => "Tiles cross here: slices of Q, K and V come down from HBM, and O goes back up.",
    },
    {
      about: ".flash-part-bars .flash-panel",
      stand: (root, callout) => root.querySelector(".flash-part-bars").prepend(callout),
      words: () => alpha,
    },
  ],
  less: [
    play,
    {
      about: ".flash-part-grid",
      stand: (root, callout) => root.querySelector(".flash-scores").append(callout),
      words: () => "The outlined tile is at work. When the next one is computed, its numbers are dropped.",
    },
    {
      about: ".flash-part-chip .flash-panel",
      stand: (root, callout) => root.querySelector(".flash-part-chip").prepend(callout),
      words: () => alpha,
    },
  ],
};

/** Whether the guide was dismissed; if nothing can be stored it counts as dismissed, since it could not be for good. */
function wasGuided() {
  try {
    return localStorage.getItem(GUIDED) !== null;
  } catch {
    return true;
  }
}

function dismiss() {
  try {
    localStorage.setItem(GUIDED, "yes");
  } catch {} // the storage is full
}

/**
 * Show the callouts on a player, one after another, unless another player on the page does. Return a function to call
 * when the player shows more panels or less.
 * @param {{ root: HTMLElement, less: boolean, transport: Transport }} player
 */
export function guide(player) {
  const { root, transport } = player;
  if (wasGuided() || document.querySelector(".flash-callout") || !root.querySelector(".flash-stage")) return () => {};
  const callouts = () => CALLOUTS[player.less ? "less" : "all"];
  const words = h("p", {});
  const next = h("button", { type: "button", class: "flash-button flash-text", onclick: () => show(shown + 1) });
  const close = h("button", { type: "button", class: "flash-button flash-text", onclick: () => end() }, "dismiss");
  const callout = h("aside", { class: "flash-callout", "aria-label": "what to look at first" });
  callout.append(words, div("flash-controls", next, close));
  let shown = 0;
  const mark = (k) => {
    for (const told of root.querySelectorAll(".flash-told")) told.classList.remove("flash-told");
    if (k >= 0) root.querySelector(callouts()[k].about)?.classList.add("flash-told");
  };
  const end = () => {
    if (callout.contains(document.activeElement)) root.focus(); // else JupyterLab gets the keys
    mark(-1);
    shown = -1;
    callout.remove();
    dismiss();
  };
  callout.addEventListener("keydown", ({ key }) => key === "Escape" && end());
  const show = (k, { isSought = k > 0 } = {}) => {
    const { length } = callouts();
    if (k === length) return end();
    shown = k;
    const held = callout.contains(document.activeElement);
    callouts()[k].stand(root, callout);
    if (held) next.focus(); // an element that moves on the page loses the focus
    if (isSought) callout.scrollIntoView({ block: "nearest" });
    mark(k);
    const last = k === length - 1;
    setText(words, `${k + 1} of ${length}. ${callouts()[k].words()}`);
    setText(next, last ? "got it" : "next");
    close.hidden = last;
  };
  show(0);
  const watch = new MutationObserver(() => {
    if (shown === 0 && transport.playing) show(1, { isSought: false }); // it was pressed: the page stays where it is
  });
  watch.observe(transport.playButton, { attributeFilter: ["data-playing"] });
  return () => {
    if (shown >= 0) show(shown);
  };
}
