// What a player is put together from.

import { div } from "../shared/elements.js";

/**
 * Views of the frames, each made anew only where its key says that what it is made of has changed: one that stays is
 * given the new frames. `places` are where they stand, `made` the views.
 */
export class Views {
  constructor(kinds) {
    this.kinds = kinds;
    this.made = {};
    this.keys = {};
    this.places = Object.fromEntries(
      Object.keys(kinds).map((name) => [name, div(`flash-part flash-part-${name}`)]),
    );
  }

  load(frames) {
    for (const [name, [key, make]] of Object.entries(this.kinds)) {
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
