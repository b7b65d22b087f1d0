// What to look at first: three callouts, until the learner has dismissed them, once and for all.

import { div, h, setText } from "../shared/elements.js";
import { between } from "../shared/numbers.js";

const GUIDED = "flashlib.guided"; // in the browser's storage
const CALLOUTS = [
  [".flash-play", "Press play, or the space bar. Every step computes one tile of S."],
  [".flash-part-chip .flash-tiles", "Tiles cross here: slices of Q, K and V come down from HBM, and O goes back up."],
  [".flash-part-bars", "Watch alpha: where a row's maximum grows, all that it has summed so far shrinks by this factor."],
];

/** Whether it was dismissed; where nothing can be stored it is never shown, since it could not be dismissed for good. */
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
  } catch {} // it is full
}

/** Show the callouts on a player, one after another, if no other player of the page does. */
export function guide(player) {
  const { root } = player;
  if (wasGuided() || document.querySelector(".flash-callout") || !root.querySelector(".flash-stage")) return;
  const words = h("p", {});
  const next = h("button", { type: "button", class: "flash-button flash-text", onclick: () => show(shown + 1) });
  const close = h("button", { type: "button", class: "flash-button flash-text", onclick: () => end() }, "dismiss");
  const callout = h("aside", { class: "flash-callout", "aria-label": "what to look at first" });
  callout.append(words, div("flash-controls", next, close));
  let shown = -1;
  const end = () => {
    if (callout.contains(document.activeElement)) root.focus(); // else JupyterLab has the keys
    placed.disconnect();
    callout.remove();
    dismiss();
  };
  callout.addEventListener("keydown", ({ key }) => key === "Escape" && end());
  const show = (k) => {
    if (k === CALLOUTS.length) return end();
    shown = k;
    const [place, text] = CALLOUTS[k];
    const [box, own] = [root.querySelector(place), root].map((element) => element.getBoundingClientRect());
    const last = k === CALLOUTS.length - 1;
    setText(words, `${k + 1} of ${CALLOUTS.length}. ${text}`);
    setText(next, last ? "got it" : "next");
    close.hidden = last;
    callout.style.left = `${between(0, box.left - own.left, own.width - 300)}px`;
    callout.style.top = `${box.bottom - own.top + 10}px`;
    if (box.bottom + 120 > own.bottom) callout.style.top = `${box.top - own.top - callout.offsetHeight - 10}px`;
  };
  const placed = new ResizeObserver(() => {
    if (!root.isConnected || !root.clientWidth || !callout.isConnected) return;
    show(Math.max(shown, 0));
  });
  root.append(callout);
  placed.observe(root);
  player.stops.push(() => placed.disconnect());
}
