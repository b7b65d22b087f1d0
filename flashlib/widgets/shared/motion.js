// What moves, for how long, and for whom not at all.

const MOTION = { longest: 350, part: 0.6, still: 10 }; // in ms; of the time of a step; none from this speed on

/**
 * How long what moves may take at a speed, in ms.
 * @param {number} speed
 */
export function motionTime(speed) {
  if (speed >= MOTION.still || matchMedia("(prefers-reduced-motion: reduce)").matches) return 0;
  return Math.min(MOTION.longest, (MOTION.part * 1000) / speed);
}

/** What moves on its way to what is shown. What is shown is there at once; the way to it is cut short by the next. */
export class Motion {
  constructor() {
    this.time = 0;
    /** @type {{ animation: Animation, ended?: () => void }[]} */
    this.running = [];
  }

  /** @param {number} time */
  begin(time) {
    for (const { animation, ended } of this.running) {
      animation.cancel();
      ended?.(); // now: the event of it comes a frame later
    }
    this.running = [];
    this.time = time;
  }

  /**
   * Take an element from an earlier look, such as { width: "20%" }, to the one that it has.
   * @param {Element} element
   * @param {Keyframe} look
   */
  from(element, look) {
    this.play(element, [{ ...look, offset: 0 }]);
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
