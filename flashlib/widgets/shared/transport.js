// Transport: first, back, play, forward, last, scrub, speed.

/** @import { Pace } from "./motion.js" */
import { div, h, svg } from "./elements.js";
import { counted } from "./language.js";
import { motionTime, storyTime } from "./motion.js";

const ICONS = {
  first: "M3 3v10M13 3L6 8l7 5z",
  back: "M11 3L4 8l7 5z",
  play: "M4 2.5v11L13 8z",
  pause: "M5 3v10M11 3v10",
  forward: "M5 3l7 5-7 5z",
  last: "M13 3v10M3 3l7 5-7 5z",
};

const SPEEDS = [0.5, 1, 2, 5, 10, 30, 60]; // steps a second
const STORY = 0; // in place of a speed: each position lasts as long as there is something to see

/**
 * Buttons, a scrub bar and a speed for positions 0 .. last. `moved(position)` is called whenever the position changes;
 * `motion` is then how many ms a motion may take, 0 for none. With a `story`, its pace is one of the speeds, the first.
 */
export class Transport {
  /** @param {{ unit: string, units: string, moved: (position: number) => void, story?: Pace }} of */
  constructor({ unit, units, moved, story }) {
    this.moved = moved;
    this.story = story;
    this.position = this.last = this.motion = 0;
    /** @type {number | null} the pending animation frame, while it plays */
    this.frame = null;
    const button = (name, label, press) =>
      h(
        "button",
        {
          type: "button",
          class: `flash-button flash-${name}`,
          "aria-label": label,
          title: label,
          onclick: press,
        },
        svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] })),
      );
    this.playButton = button("play", "play (space)", () => this.toggle());
    this.touched = 0; // where a finger found it
    this.scrub = h("input", {
      type: "range",
      class: "flash-scrub",
      min: 0,
      "aria-label": unit,
      oninput: () => this.seek(Number(this.scrub.value)),
      onpointerdown: () => (this.touched = this.position),
      onpointercancel: () => this.seek(this.touched), // the finger scrolls the page
    });
    this.marks = svg("svg", { class: "flash-marks", "aria-hidden": "true", preserveAspectRatio: "none" });
    this.bar = div("flash-scrubs", this.scrub, this.marks);
    const steady = SPEEDS.map((speed) => [speed, `${counted(speed, unit, units)}/s`]);
    this.speed = h(
      "select",
      { class: "flash-speed", "aria-label": story ? `pace, or ${units} per second` : `${units} per second` },
      [...(story ? [[STORY, "story pace"]] : []), ...steady].map(([value, text]) =>
        h("option", { value, selected: value === (story ? STORY : 2) }, text),
      ),
    );
    this.buttons = h(
      "div",
      { class: "flash-buttons", role: "group", "aria-label": "playing" },
      button("first", "first (Home)", () => this.seek(0)),
      button("back", "back (left arrow)", () => this.step(-1)),
      this.playButton,
      button("forward", "forward (right arrow)", () => this.step(1)),
      button("last", "last (End)", () => this.seek(this.last)),
    );
    this.element = div("flash-transport", this.buttons, this.bar);
  }

  /** The pace of the story, if it is chosen. */
  get #pace() {
    return Number(this.speed.value) === STORY ? this.story : undefined;
  }

  get playing() {
    return this.frame !== null;
  }

  /**
   * Take different positions, and go to one of them; from the end, go to the new end, where changes are compared.
   * @param {number} last
   */
  reset(last, position = 0) {
    const ended = this.last > 0 && this.position === this.last;
    this.last = last;
    this.scrub.max = String(last);
    this.seek(ended ? last : position);
  }

  /**
   * Mark positions under the scrub bar.
   * @param {number[]} positions
   */
  mark(positions) {
    this.marks.setAttribute("viewBox", `0 0 ${Math.max(this.last, 1)} 1`);
    this.marks.replaceChildren(svg("path", { d: positions.map((position) => `M${position} 0V1`).join("") }));
  }

  /**
   * Go to a position and stay there.
   * @param {number} position
   */
  seek(position) {
    this.pause();
    this.#go(position);
  }

  /** @param {number} by */
  step(by) {
    this.pause();
    this.#go(this.position + by, by === 1);
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.position === this.last) this.#go(0);
    let due = performance.now();
    const tick = (now) => {
      const wait = this.#pace?.lasts(this.position) ?? 1000 / Number(this.speed.value);
      if (now - due >= wait - 2) {
        due = now - due > 2 * wait ? now : due + wait; // after a pause of the page: continue without catching up
        this.#go(this.#pace?.next?.(this.position) ?? this.position + 1, true);
        if (this.position === this.last) return this.pause();
      }
      this.frame = requestAnimationFrame(tick);
    };
    this.frame = requestAnimationFrame(tick);
    this.#showPlaying();
  }

  pause() {
    if (this.frame === null) return;
    cancelAnimationFrame(this.frame);
    this.frame = null;
    this.#showPlaying();
  }

  #showPlaying() {
    const name = this.playing ? "pause" : "play";
    this.playButton.querySelector("path")?.setAttribute("d", ICONS[name]);
    this.playButton.setAttribute("aria-label", `${name} (space)`);
    this.playButton.title = `${name} (space)`;
    this.playButton.dataset.playing = String(this.playing);
  }

  /** @param {number} position */
  #go(position, moving = false) {
    this.motion = moving && position <= this.last ? this.#time(position) : 0;
    this.position = Math.max(0, Math.min(this.last, position));
    this.scrub.value = String(this.position);
    this.moved(this.position);
    this.motion = 0; // what is redrawn later, say for another row, does not move
  }

  /** How long a motion towards a position may take, in ms. */
  #time(position) {
    const pace = this.#pace;
    return pace ? storyTime(pace, position) : motionTime(Number(this.speed.value));
  }
}
