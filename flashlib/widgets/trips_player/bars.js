// The bytes that both sides have moved, on one scale: each trip is as long as its bytes.

/** @import { Motion } from "../shared/motion.js" */
/** @import { Race, SideName } from "./race.js" */
/** @import { Trip, UnderWay } from "./types.js" */
import { bytes } from "../flash_player/frames.js";
import { mark } from "../flash_player/legend.js";
import { div, h, note, panel, setText, steadyNote } from "../shared/elements.js";
import { andList } from "../shared/language.js";

const LETTER = 6.5; // px, the width of one in a label
const NARROWEST = 280; // px, of all trips together

/** The trips of one side as a bar that fills. */
class TripsBar {
  /** @type {Race} */
  race;

  /** @param {SideName} name @param {string} title @param {boolean} named whether its trips have names */
  constructor(name, title, named) {
    this.name = name;
    this.title = title;
    this.count = steadyNote();
    this.labels = named && div("flash-trips-labels");
    this.all = div("flash-trips-all");
    this.moved = div("flash-trips-moved");
    this.now = h("i", { class: "flash-trips-now" });
    this.track = h("div", { class: "flash-trips-track", role: "img" }, this.all, this.moved, this.now);
    const head = div("flash-trips-name", h("b", {}, title), this.count.element);
    this.element = h("div", { class: "flash-trips-bar", "data-side": name }, head, div("", this.labels, this.track));
  }

  /** @param {Race} race */
  take(race) {
    this.race = race;
    const { trips } = race.sides[this.name];
    const all = bytes(race.sides[this.name].total);
    setText(this.count.longest, `${all} of ${all}`);
    const parts = () => trips.map((trip) => h("i", { "data-kind": kindOf(trip), style: this.#place(trip) }));
    this.all.replaceChildren(...parts());
    this.moved.replaceChildren(...parts());
    if (this.labels) this.labels.replaceChildren(...trips.flatMap((trip) => this.#label(trip)));
  }

  #place({ start, bytes: moved }) {
    return `left:${(100 * start) / this.race.most}%;width:${(100 * moved) / this.race.most}%`;
  }

  /** @param {Trip} trip */
  #label(trip) {
    const names = andList(trip.flights.flatMap(({ name }) => (name === "lse" ? [] : [name]))); // which is small
    const text = trip.loads ? `${names} in` : `${names} out`;
    const fits = (NARROWEST * trip.bytes) / this.race.most > LETTER * text.length;
    return fits ? [h("span", { style: this.#place(trip) }, text)] : [];
  }

  /**
   * @param {number} position
   * @param {UnderWay | undefined} way
   * @param {Motion} motion
   */
  draw(position, way, motion) {
    const { race, name, moved } = this;
    const by = race.moved(name, position);
    const text = `${bytes(by)} of ${bytes(race.sides[name].total)}`;
    setText(this.count.text, text);
    this.track.setAttribute("aria-label", `${this.title}: ${text}`);
    const clip = (n) => `inset(0 ${100 - (100 * n) / race.most}% 0 0)`;
    moved.style.clipPath = clip(by);
    const [from] = race.span(position);
    if (from < by) motion.from(moved, { clipPath: clip(from) });
    this.now.hidden = !way;
    if (way) this.now.setAttribute("style", this.#place(way.trip));
  }
}

/** @param {Trip} trip */
const kindOf = ({ loads }) => (loads ? "read" : "written");

export class TripsBars {
  /** @param {Record<SideName, string>} titles */
  constructor(titles) {
    this.bars = Object.entries(titles).map(
      ([name, title]) => new TripsBar(/** @type {SideName} */ (name), title, name === "standard"),
    );
    const ways = [mark("read", "loaded: HBM to chip"), mark("written", "stored: chip to HBM")];
    const keys = note(ways, mark("now", "on its way"));
    const rows = this.bars.map(({ element }) => element);
    this.element = panel("trips-bytes", "Bytes moved, on one scale", keys, div("flash-trips-bars", rows));
  }

  /** @param {Race} race */
  take(race) {
    for (const bar of this.bars) bar.take(race);
  }

  /**
   * @param {number} position
   * @param {Record<SideName, UnderWay | undefined>} ways
   * @param {Motion} motion
   */
  draw(position, ways, motion) {
    for (const bar of this.bars) bar.draw(position, ways[bar.name], motion);
  }
}
