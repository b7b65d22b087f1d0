// What moves, for how long, and for whom nothing moves.

const MOTION = { longest: 350, part: 0.6, still: 10 }; // ms; share of a step's time; no motion from this speed on

const isReduced = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/**
 * How long a motion may take at a speed, in ms.
 * @param {number} speed
 */
export function motionTime(speed) {
  if (speed >= MOTION.still || isReduced()) return 0;
  return Math.min(MOTION.longest, (MOTION.part * 1000) / speed);
}

/**
 * The pace of a story: how many ms a position lasts; how many of them a motion takes; the next position.
 * @typedef {object} Pace
 * @property {(position: number) => number} lasts
 * @property {(position: number) => number} [moves]
 * @property {(position: number) => number} [next]
 */

/** A rescale: a factor flies to the sums, if it is shown; on its arrival they shrink; the rest is time to read. */
const RESCALE = { lasts: 2000, shrink: 700, fly: 500 }; // ms
export const PART = 400; // ms, of every other part of a story
export const READ = 1500; // ms, of a part whose sentence is to be read
export const HOLD = RESCALE.fly / (RESCALE.fly + RESCALE.shrink); // share of the time of both, before the shrink

/**
 * How long a motion may take at a position of a story, in ms.
 * @param {Pace} pace
 * @param {number} position
 */
export function storyTime({ lasts, moves }, position) {
  if (isReduced()) return 0;
  return moves ? moves(position) : Math.min(MOTION.longest, MOTION.part * lasts(position));
}

/**
 * @typedef {object} Story
 * @property {(position: number) => boolean} rescales
 * @property {boolean} [flies] whether a factor flies to the sums that shrink
 * @property {(position: number) => number} [lasts] of a position that does not rescale
 * @property {Pace["next"]} [next]
 */

/**
 * The pace of a story in which some positions rescale.
 * @param {Story} story
 * @returns {Pace}
 */
export const storyPace = ({ rescales, flies, lasts = () => PART, next }) => ({
  lasts: (position) => (rescales(position) ? RESCALE.lasts : lasts(position)),
  moves: (position) => (rescales(position) ? RESCALE.shrink + (flies ? RESCALE.fly : 0) : MOTION.part * PART),
  next,
});

/** Motions towards the current state. The state is shown at once; a motion towards it is cut short by the next one. */
export class Motion {
  constructor() {
    this.time = 0;
    this.hold = 0; // the share of the time before a motion begins
    this.easing = "ease-in-out";
    /** @type {{ animation: Animation, ended?: () => void }[]} */
    this.running = [];
  }

  /** @param {number} time @param {number} [hold] @param {string} [easing] as of CSS */
  begin(time, hold = 0, easing = "ease-in-out") {
    for (const { animation, ended } of this.running) {
      animation.cancel();
      ended?.(); // now, since its event comes a frame later
    }
    this.running = [];
    this.time = time;
    this.hold = hold;
    this.easing = easing;
  }

  /**
   * Animate an element from an earlier look, such as { width: "20%" }, to its current one.
   * @param {Element} element
   * @param {Keyframe} look
   */
  from(element, look) {
    const held = this.hold ? [{ ...look, offset: this.hold }] : [];
    this.play(element, [{ ...look, offset: 0 }, ...held]);
  }

  /**
   * Play keyframes on an element; `ended` is called when they end, and when they are cut short.
   * @param {Element} element
   * @param {Keyframe[]} looks
   * @param {() => void} [ended]
   */
  play(element, looks, ended) {
    if (!this.time) return;
    const animation = element.animate(looks, { duration: this.time, easing: this.easing });
    animation.onfinish = ended ?? null;
    this.running.push({ animation, ended });
  }
}
