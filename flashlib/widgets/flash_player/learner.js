// A learner's own steps: where they go wrong, as marks under the scrub bar and in words.

/** @import { Frames } from "./frames.js" */
/** @import { At, ForwardStep, Learner } from "./types.js" */
import { note, setText, svg } from "../shared/elements.js";
import { counted } from "../shared/language.js";
import { between, number } from "../shared/number_text.js";

/**
 * An error in words; Python, which cannot send infinity or NaN, sends 1e300 for both.
 * @param {number} error
 */
const size = (error) => (error < 1e300 ? number(error) : "∞ or NaN");

/** Where the errors of the steps are shown: a picture, which goes below the scrub bar, and words. */
export const errorMarks = () => ({
  picture: svg("svg", { class: "flash-errors", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("path", {})),
  words: note(),
});

/**
 * The error of each step: as a bar, higher for each power of ten, from what rounding explains up to 1; and in words.
 * @param {ReturnType<typeof errorMarks>} marks
 * @param {Learner} learner
 * @param {number} T
 */
export function drawErrors({ picture, words }, { errors, tolerance }, T) {
  const height = (error) =>
    error > tolerance ? between(0.25, 1 - Math.log10(error) / Math.log10(tolerance), 1) : 0;
  const bars = errors.map((error, k) => `M${k} 1V${1 - height(error)}H${k + 0.8}V1z`).join("");
  picture.setAttribute("viewBox", `0 0 ${Math.max(T, 1)} 1`);
  picture.firstElementChild?.setAttribute("d", bars);
  const worst = errors.length ? Math.max(...errors) : 0;
  const most = `red: how far off each step is, relative to the largest number of its row, at most ${size(worst)}; log scale`;
  setText(words, worst > tolerance ? most : "no error at the steps that were played");
}

/**
 * Whether nothing is wrong.
 * @param {Learner} learner
 */
export const isRight = ({ first, missed, remark, O, lse, note }) =>
  !first && !missed.length && !remark && !O && !lse && !note;

/**
 * The verdict in a line: whose code it is, and how far it is right.
 * @param {Learner} learner
 * @param {Frames} frames
 */
export function heading(learner, frames) {
  const { T } = frames;
  const { name, first, missed, O, lse } = learner;
  const code = `\`${name}\``;
  if (first) {
    const [k, what, r] = first;
    const row = frames.rowInText(r);
    if (k === 0) return `${code}: wrong from step 1 of ${T} on, first in ${what} of ${row}`;
    return `${code}: right up to step ${k} of ${T}, first wrong in ${what} of ${row}`;
  }
  if (missed.length) return `${code}: right at each step, but ${counted(missed.length, "tile", "tiles")} missed`;
  if (O) return `${code}: right at each step, but O is wrong from row ${O[1]} on`;
  if (lse) return `${code}: right at each step, but lse is wrong from row ${lse[1]} on`;
  return isRight(learner) ? `${code}: right on these numbers` : `${code}: right at each step that was played`;
}

/**
 * The part of a step in which a name is set.
 * @param {string} name
 */
export const partOf = (name) => (name === "m" ? "maximum" : "add");

/**
 * The sentences on a learner's steps at a frame.
 * @param {Learner} learner
 * @param {Frames} frames
 * @param {At<ForwardStep>} at
 */
export function verdict(learner, frames, { k, step, reached }) {
  const { steps, numbers, d } = frames;
  const { first, missed, remark, errors, tolerance, O, lse, note, kernel } = learner;
  const tile = ({ i, j }) => `tile (${i}, ${j})`;
  if (!step) {
    const parted = first
      ? `It went wrong at step ${first[0] + 1}.`
      : "m, l and O_acc were right at every step that was played.";
    const [i, j] = missed[0] ?? [];
    const off = (name, [most, row]) => `${name} is wrong from row ${row} on, by up to ${size(most)}.`;
    const sentences = [
      remark && `${remark}.`,
      parted,
      missed.length && `${counted(missed.length, "tile", "tiles")} missed, the first is (${i}, ${j}).`,
      O ? off("O", O) : "O is right.",
      lse && off("lse", lse),
      note && `${note}.`,
      kernel && isRight(learner) && "Right on these numbers; its check tries many more.",
    ];
    return sentences.filter(Boolean).join(" ");
  }
  if (!first) return "";
  const [at, name, row] = first;
  if (!reached(k === at ? partOf(name) : "add")) return "";
  if (k === at) {
    const r = row - step.rows[0];
    const c = name === "O_acc" ? furthest(numbers, step.O_acc + r * d, step.O_acc_true + r * d, d) : 0;
    const [given, truth] = [name, `${name}_true`].map(
      (x) => numbers[step[x] + (name === "O_acc" ? r * d + c : r)],
    );
    const place = frames.rowInText(row);
    if (name === "O_acc")
      return `Here it goes wrong: O_acc of ${place} is ${number(given)} in column ${c}, it should be ${number(truth)}.`;
    return `Here it goes wrong: ${name} of ${place} is ${number(given)}, it should be ${number(truth)}.`;
  }
  if (errors[k] <= tolerance) return "";
  const since = `it went wrong at step ${at + 1}, ${tile(steps[at])}, in ${name}`;
  return `Off by up to ${size(errors[k])} of the true value; ${since}.`;
}

/**
 * The index at which two runs of numbers differ most.
 * @param {Float64Array} numbers
 * @param {number} a
 * @param {number} b
 * @param {number} length
 */
function furthest(numbers, a, b, length) {
  const apart = (c) => {
    const difference = Math.abs(numbers[a + c] - numbers[b + c]);
    return Number.isNaN(difference) ? Infinity : difference;
  };
  let most = 0;
  for (let c = 1; c < length; c++) if (apart(c) > apart(most)) most = c;
  return most;
}
