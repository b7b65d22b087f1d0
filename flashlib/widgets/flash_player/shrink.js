// The rescale in a row of the table: the factor moves from alpha to l and O_acc, whose old values shrink by it.

/** @import { Motion } from "../shared/motion.js" */
import { h } from "../shared/elements.js";
import { between, number } from "../shared/number_text.js";

const LEAST = 0.15; // of the size: anything that shrinks further would be invisible

/** @typedef {{ element: HTMLElement, copy: HTMLElement }} Copied */

/**
 * An element, and a copy of its current look, which is not on the page yet.
 * @param {HTMLElement} element
 * @returns {Copied}
 */
export function copyOf(element) {
  const copy = /** @type {HTMLElement} */ (element.cloneNode(true));
  for (const name of ["data-name", "role", "aria-label"]) copy.removeAttribute(name);
  copy.setAttribute("aria-hidden", "true");
  copy.classList.add("flash-copy");
  return { element, copy };
}

/**
 * Shrink the elements' old looks by alpha; in the described row, the factor first moves to each of them.
 * @param {Motion} motion
 * @param {HTMLElement} cell of alpha
 * @param {number} alpha
 * @param {Copied[]} copies
 * @param {boolean} told
 */
export function shrink(motion, cell, alpha, copies, told) {
  const { hold } = motion;
  for (const { element, copy } of copies) {
    Object.assign(copy.style, { left: `${element.offsetLeft}px`, top: `${element.offsetTop}px` });
    element.after(copy);
    const looks = [
      { transform: "none", opacity: 1 },
      { transform: "none", opacity: 1, offset: hold },
      { transform: `scale(${between(LEAST, alpha, 1)})`, opacity: 0 },
    ];
    motion.play(copy, looks, () => copy.remove());
    motion.play(element, [{ opacity: 0 }, { opacity: 0, offset: hold }, { opacity: 1 }]);
    if (told) sendFactor(motion, cell, `× ${number(alpha)}`, element);
  }
}

/**
 * Send a factor from the cell of alpha to an element that it multiplies.
 * @param {Motion} motion
 * @param {HTMLElement} cell
 * @param {string} text
 * @param {HTMLElement} to
 */
function sendFactor(motion, cell, text, to) {
  const factor = h("b", { class: "flash-flying", "aria-hidden": "true" }, text);
  cell.append(factor);
  const [own, goal] = [factor, to].map((element) => element.getBoundingClientRect());
  const middle = ({ left, top, width, height }) => [left + width / 2, top + height / 2];
  const [x, y] = middle(goal).map((to, k) => to - middle(own)[k]);
  const there = `translate(${x}px, ${y}px)`;
  const looks = [
    { transform: "none", opacity: 1 },
    { transform: there, opacity: 1, offset: motion.hold },
    { transform: `${there} scale(0.6)`, opacity: 0, offset: (1 + motion.hold) / 2 },
    { transform: `${there} scale(0.6)`, opacity: 0 },
  ];
  motion.play(factor, looks, () => factor.remove());
}
