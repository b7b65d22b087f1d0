// What moves, for how long, and for whom not at all.

const MOTION = { longest: 350, part: 0.6, still: 10 }; // in ms; of the time of a step; none from this speed on

const isReduced = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/**
 * How long what moves may take at a speed, in ms.
 * @param {number} speed
 */
export function motionTime(speed) {
  if (speed >= MOTION.still || isReduced()) return 0;
  return Math.min(MOTION.longest, (MOTION.part * 1000) / speed);
}

/**
 * The pace of a story: how many ms a position stays; how many of them what moves takes; where playing goes next.
 * @typedef {object} Pace
 * @property {(position: number) => number} lasts
 * @property {(position: number) => number} [moves]
 * @property {(position: number) => number} [next]
 */

/** What is summed is multiplied: it shrinks, where a factor flies to it once that is there; then one reads of it. */
const RESCALE = { lasts: 2000, shrink: 700, fly: 500 }; // ms
export const PART = 400; // ms, of every other part of a story
export const HOLD = RESCALE.fly / (RESCALE.fly + RESCALE.shrink); // of the time of both, before the shrink

/**
 * How long what moves may take at a position of a story, in ms.
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
 * @property {boolean} [flies] whether a factor flies to what shrinks
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

/** What moves on its way to what is shown. What is shown is there at once; the way to it is cut short by the next. */
export class Motion {
  constructor() {
    this.time = 0;
    this.hold = 0; // the part of the time in which what moves stays as it was
    this.easing = "ease-in-out";
    /** @type {{ animation: Animation, ended?: () => void }[]} */
    this.running = [];
  }

  /** @param {number} time @param {number} [hold] @param {string} [easing] as of CSS */
  begin(time, hold = 0, easing = "ease-in-out") {
    for (const { animation, ended } of this.running) {
      animation.cancel();
      ended?.(); // now: the event of it comes a frame later
    }
    this.running = [];
    this.time = time;
    this.hold = hold;
    this.easing = easing;
  }

  /**
   * Take an element from an earlier look, such as { width: "20%" }, to the one that it has.
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
