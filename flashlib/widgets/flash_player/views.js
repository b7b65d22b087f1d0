// The views that make up a player.

import { div } from "../shared/elements.js";

/**
 * @template Frames
 * @typedef {{ element: Element, take: (frames: Frames) => void }} View
 */

/**
 * For each view, the key that says when to make it anew, and how to make it from the frames.
 * @template Frames
 * @template Made
 * @typedef {{ [Name in keyof Made]: [key: (frames: Frames) => any, make: (frames: Frames) => Made[Name]] }} Kinds
 */

/**
 * Views of the frames. Each is made anew only if its key has changed; otherwise it is given the new frames. `places` are
 * their containers, `made` the views.
 * @template Frames
 * @template {Record<string, View<Frames>>} Made
 */
export class Views {
  /** @param {Kinds<Frames, Made>} kinds */
  constructor(kinds) {
    this.kinds = kinds;
    this.made = /** @type {Made} */ ({});
    /** @type {Record<string, string>} */
    this.keys = {};
    const places = Object.keys(kinds).map((name) => [name, div(`flash-part flash-part-${name}`)]);
    this.places = /** @type {Record<keyof Made, HTMLElement>} */ (Object.fromEntries(places));
  }

  /** @param {Frames} frames */
  load(frames) {
    for (const name of /** @type {(string & keyof Made)[]} */ (Object.keys(this.kinds))) {
      const [key, make] = this.kinds[name];
      const wanted = JSON.stringify(key(frames));
      if (this.keys[name] !== wanted) {
        this.made[name] = make(frames);
        this.places[name].replaceChildren(this.made[name].element);
        this.keys[name] = wanted;
      }
      this.made[name].take(frames);
    }
  }
}
