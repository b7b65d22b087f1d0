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

/** What is summed is multiplied: the factor goes there, then what is there shrinks; there is time to read of it. */
export const RESCALE = { lasts: 2000, moves: 1200, hold: 5 / 12 }; // ms, ms, the part of them before the shrink
export const PART = 400; // ms, of every other part of a story

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
 * The pace of a story in which some positions rescale.
 * @param {{ rescales: (position: number) => boolean, lasts?: (position: number) => number, next?: Pace["next"] }} of
 * @returns {Pace}
 */
export const storyPace = ({ rescales, lasts = () => PART, next }) => ({
  lasts: (position) => (rescales(position) ? RESCALE.lasts : lasts(position)),
  moves: (position) => (rescales(position) ? RESCALE.moves : MOTION.part * PART),
  next,
});

/** What moves on its way to what is shown. What is shown is there at once; the way to it is cut short by the next. */
export class Motion {
  constructor() {
    this.time = 0;
    this.hold = 0; // the part of the time in which what moves stays as it was
    /** @type {{ animation: Animation, ended?: () => void }[]} */
    this.running = [];
  }

  /** @param {number} time @param {number} [hold] */
  begin(time, hold = 0) {
    for (const { animation, ended } of this.running) {
      animation.cancel();
      ended?.(); // now: the event of it comes a frame later
    }
    this.running = [];
    this.time = time;
    this.hold = hold;
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
    const animation = element.animate(looks, { duration: this.time, easing: "ease-in-out" });
    animation.onfinish = ended ?? null;
    this.running.push({ animation, ended });
  }
}
