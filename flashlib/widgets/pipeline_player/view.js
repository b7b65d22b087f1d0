/** @import { Result } from "./types.js" */
import { andList } from "../shared/language.js";
import { between } from "../shared/number_text.js";

/**
 * A view is the part of an axis from 0 to `end` that is shown, [from, to].
 * Return a view `factor` times as wide, with `at` in its middle, or as near to that as the ends of the axis allow.
 * @param {number[]} view
 * @param {number} factor
 * @param {number} at
 * @param {number} end
 */
export function zoomed([from, to], factor, at, end) {
  const wide = between(end / 64, (to - from) * factor, end);
  const start = between(0, at - wide / 2, end - wide);
  return [start, start + wide];
}

const PIPE_MOMENTS = 120; // of an axis of clocks, evenly spaced in time

/**
 * The times that are played: evenly spaced if the axis counts clocks, else each action.
 * @param {Result} result
 */
export function playedTimes({ axis, end, events }) {
  if (axis === "actions" || !end) return events;
  return Array.from({ length: PIPE_MOMENTS + 1 }, (_, k) => (end * k) / PIPE_MOMENTS);
}

/**
 * The slowest speed, of at least 2 per second, at which this many are played in half a minute.
 * @param {number} count
 * @param {number[]} speeds
 */
export const playedAt = (count, speeds) =>
  speeds.find((speed) => speed >= 2 && count <= 30 * speed) ?? speeds[speeds.length - 1];

/**
 * Return a view of the same width with `at` near its left end, or as near to that as the ends of the axis allow.
 * @param {number[]} view
 * @param {number} at
 * @param {number} end
 */
export function moved([from, to], at, end) {
  const start = between(0, at - 0.1 * (to - from), end - (to - from));
  return [start, start + to - from];
}

const PIPE_OF_ATTENTION = /^PV\d/; // weights times V

/**
 * A title in plain words, and how to read the picture.
 * @param {Pick<Result, "axis" | "programs">} result
 */
export function pipeTitle({ axis, programs }) {
  if (axis === "actions") return ["How a pipeline goes wrong", "One action after another; each row is a unit, a role, a slot or a barrier."];
  const how = "Time goes to the right. A bar: it works. A gap: it does nothing.";
  const attends = programs.every(({ rows }) => rows.some(({ spans = [] }) => spans.some(([, name]) => PIPE_OF_ATTENTION.test(name))));
  if (programs.length === 1) return [attends ? "An attention kernel at work on one multiprocessor" : "A kernel at work on one multiprocessor", how];
  const clocks = andList(programs.map(({ end }) => String(Math.round(end))));
  const whole = programs.every(({ rows }) => rows.length); // none of them stopped early
  const title = attends ? `Attention in ${programs.length} ways` : `The same work in ${programs.length} ways`;
  return [whole ? `${title}: ${clocks} clocks` : title, how];
}
