// The words that stand for rows and columns, beside what has them.

import { div, h } from "../shared/elements.js";

const LETTER = { narrow: 6.8, wide: 11 }; // px, of a letter in a label, at most: of a script such as Latin, and of others
const HIGH = 11; // px: a row that is less high has no room for a word
const MOST = 84; // px of a label: the rest of a longer one is cut off

/**
 * How much room words take beside each other's rows, in pixels: that of the longest, with some space.
 * @param {string[]} words
 */
export function roomOf(words) {
  const width = (word) => [...word].reduce((sum, letter) => sum + (letter < "\u0500" ? LETTER.narrow : LETTER.wide), 0);
  return Math.min(MOST, Math.max(0, ...words.map(width)) + 6);
}

/**
 * Words below each other, beside rows of this height; nothing without words, or where rows are too low.
 * @param {string[] | null} words
 * @param {number} height
 */
export function wordsBeside(words, height) {
  if (!words || height < HIGH) return null;
  const style = `line-height:${height}px; width:${roomOf(words)}px`;
  return div("flash-row-words", words.map((word) => h("span", { style, title: word }, word)));
}
