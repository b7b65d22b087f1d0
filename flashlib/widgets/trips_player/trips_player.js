// TripsPlayer: what standard attention and FlashAttention move between HBM and the chip, each trip as it was metered.

/** @import { Colours } from "../shared/colours.js" */
/** @import { SideName } from "./race.js" */
/** @import { Sent, Traits, UnderWay } from "./types.js" */
import { bytes } from "../flash_player/frames.js";
import { colourScale, paintScale } from "../shared/colours.js";
import { slider } from "../shared/controls.js";
import { div, h, headline, setSentence, setText } from "../shared/elements.js";
import { say } from "../shared/language.js";
import { Motion } from "../shared/motion.js";
import { between } from "../shared/number_text.js";
import { Transport } from "../shared/transport.js";
import { Widget } from "../shared/widget.js";
import { TripsBars } from "./bars.js";
import { Race } from "./race.js";
import { Side } from "./side.js";
import { compared, flashWords, needed, standardWords } from "./words.js";

const TITLES = { standard: "Standard attention", flash: "FlashAttention" };
const WHERE_SCORES_GO = { standard: "S and P go out to HBM and come back", flash: "S and P never leave the chip" };
const PLAYED = 14_000; // ms, to play the side that moves most

const BOTH = /** @type {SideName[]} */ (Object.keys(TITLES));

/** @extends {Widget<Traits>} */
class TripsPlayer extends Widget {
  /** @type {Race | undefined} */
  race;
  /** @type {Colours | undefined} */
  colour;

  /** @param {Context<Traits>} context */
  constructor(context) {
    super(context, "trips flash-played", "trips between memory and chip");
    const lasts = (position) => this.#time(position);
    const story = { lasts, moves: lasts };
    this.transport = new Transport({ unit: "step", units: "steps", moved: () => this.draw(), story });
    this.motion = new Motion();
    this.head = headline("Attention's trips between memory and chip");
    this.status = h("span", { class: "flash-status" });
    this.controls = {
      N: slider("N", "N, rows of Q, K and V", (N) => this.ask({ N })),
      d: slider("d", "d, columns of Q, K and V", (d) => this.ask({ d })),
    };
    this.bars = new TripsBars(TITLES);
    this.sides = BOTH.map((name) => new Side(name, TITLES[name], WHERE_SCORES_GO[name]));
    const { element, bar, speed } = this.transport;
    const settings = this.settings(Object.values(this.controls).map(({ element }) => element));
    const row = div("flash-controls", element, this.status, speed, settings);
    const sides = div("flash-trips-sides", this.sides.map(({ element }) => element));
    bar.title = say("at each tick, a trip of standard attention begins (page up, page down)");
    this.root.append(this.head.element, div("flash-panel flash-header", row), this.bars.element, sides);
    this.#watchWidth();
    this.stops.push(() => this.transport.pause());
    this.start("frames", {
      " ": () => this.transport.toggle(),
      ArrowLeft: () => this.transport.step(-1),
      ArrowRight: () => this.transport.step(1),
      Home: () => this.transport.seek(0),
      End: () => this.transport.seek(this.transport.last),
      PageUp: () => this.#seekTrip(-1),
      PageDown: () => this.#seekTrip(1),
    });
  }

  /** What is on its way is placed anew where the page has another width. */
  #watchWidth() {
    let width = 0;
    const observer = new ResizeObserver(([{ contentRect }]) => {
      if (contentRect.width === width) return;
      width = contentRect.width;
      const rooms = this.sides.map(({ stage }) => stage.clientWidth); // of both, before what is laid out changes
      this.sides.forEach((side, k) => side.fit(rooms[k] || undefined));
      this.draw();
    });
    observer.observe(this.root);
    this.stops.push(() => observer.disconnect());
  }

  /** How long a position lasts, in ms: as its bytes do. */
  #time(position) {
    if (!this.race) return 0;
    const [from, to] = this.race.span(position);
    return (PLAYED * (to - from)) / this.race.most;
  }

  /** @param {number} by trips of standard attention */
  #seekTrip(by) {
    const starts = [...(this.race?.starts() ?? []), this.transport.last];
    const at = starts.findLastIndex((start) => start <= this.transport.position);
    this.transport.seek(starts[between(0, at + by, starts.length - 1)]);
  }

  /** @param {Sent} sent */
  load(sent) {
    const before = this.race;
    const race = (this.race = new Race(sent));
    const { N, d } = this.controls;
    N.show(this.model.get("N"), sent.ranges.N); // as it was asked for last
    d.show(this.model.get("d"), sent.ranges.d);
    this.bars.take(race);
    for (const side of this.sides) side.take(race);
    setSentence(this.head.now, compared(race));
    if (!this.colour) this.paint();
    const { position } = this.transport;
    this.transport.reset(race.last, before ? Math.floor((position * race.last) / before.last) : 0);
    this.transport.mark(race.starts());
  }

  paint() {
    if (!this.root.isConnected) return; // called again when it is on the page
    this.colour = colourScale(this.root);
    paintScale(this.root, this.colour);
  }

  draw() {
    const { race, colour, motion, transport } = this;
    if (!race || !colour) return;
    const { position } = transport;
    motion.begin(transport.motion, 0, "linear");
    const ways = /** @type {Record<SideName, UnderWay | undefined>} */ (
      Object.fromEntries(BOTH.map((name) => [name, race.underWay(name, position)]))
    );
    const words = { standard: standardWords(race, ways.standard), flash: flashWords(race, ways.flash) };
    for (const side of this.sides) {
      side.draw(position, ways[side.name], words[side.name], colour, motion);
      side.drawRoom(this.#needs(side.name, ways));
    }
    this.bars.draw(position, ways, motion);
    const after = `after ${bytes(position < race.last ? race.span(position)[1] : race.most)}`;
    const where = position < race.last ? after : `finished ${after}`;
    setText(this.status, after); // a longer text would push the sliders to another line
    transport.scrub.setAttribute("aria-valuetext", where);
    this.spoken.say(`${where}. ${TITLES.standard}: ${words.standard} ${TITLES.flash}: ${words.flash}`);
    this.root.dataset.frame = String(position);
  }

  /**
   * How many bytes of the chip a side needs.
   * @param {SideName} name
   * @param {Record<SideName, UnderWay | undefined>} ways
   */
  #needs(name, ways) {
    const race = /** @type {Race} */ (this.race);
    const way = ways[name];
    if (!way) return 0;
    return name === "flash" ? race.tile : needed(race, way);
  }
}

export default {
  /** @param {Context<Traits>} context */
  render(context) {
    const player = new TripsPlayer(context);
    return () => player.stop();
  },
};
