// SRAM: the tiles it holds now, the bytes they take, and the state of each row of the block.

/** @import { Motion } from "../shared/motion.js" */
/** @import { Colours } from "../shared/colours.js" */
/** @import { Frames } from "./frames.js" */
/** @import { Matrix } from "./matrix.js" */
/** @import { At, ForwardStep } from "./types.js" */
import { div, h, note, panel, setText, steadyNote } from "../shared/elements.js";
import { bytes, longestPlace, place } from "./frames.js";
import { cellsIn, heatWidth, NamedTile, WITHOUT_NUMBERS } from "./matrix.js";
import { StateTable } from "./table.js";
import { Views } from "./views.js";

const TILES = 508; // px, for Q_i, K_j, V_j, S_ij and P_ij side by side

export class Chip {
  /**
   * less: the state of the rows alone, without the tiles and what they take.
   * @param {Frames} frames
   * @param {(row: number) => void} pressed
   * @param {{ less?: boolean }} [options]
   */
  constructor(frames, pressed, { less = false } = {}) {
    this.where = steadyNote();
    const ofTable = ({ B_r, d, learner, rowWords }) => [B_r, d, Boolean(learner), rowWords];
    /** @type {Views<Frames, Partial<Record<"room" | "tiles", any>> & { table: StateTable }>} */
    this.views = new Views({
      ...(!less && { room: [({ sram }) => sram, (frames) => room(frames)], tiles: [() => 0, () => new Tiles()] }),
      table: [ofTable, (frames) => new StateTable(frames, pressed, { worded: less })],
    });
    const { room: bar, tiles, table } = this.views.places;
    const about = [h("span", {}, "small and fast"), h("span", { class: "flash-enlarged" }, "drawn enlarged")];
    this.element = less
      ? panel("chip", "State of each row", note(frames.learner?.first ? "on the chip; after ≠: the true value" : "on the chip"), table)
      : panel("chip", "SRAM", [note(about), bar, this.where.element], tiles, table);
  }

  /** @param {Frames} frames */
  take(frames) {
    this.views.load(frames);
    setText(this.where.longest, longestPlace(frames.steps));
  }

  /**
   * @param {At<ForwardStep>} at
   * @param {number} selected
   * @param {Colours} colour
   * @param {Motion} motion
   */
  draw(at, selected, colour, motion) {
    const { step } = at;
    setText(this.where.text, step ? place(step) : "empty");
    this.views.made.tiles?.draw(at, colour);
    this.views.made.table.draw(at, selected, colour, motion);
  }

  /**
   * The element of a tile, which must be shown.
   * @param {string} name
   */
  tile(name) {
    return /** @type {Matrix} */ (this.#matrix(name)).element;
  }

  /**
   * @param {string} name
   * @returns {Matrix | undefined}
   */
  #matrix(name) {
    return this.views.made.tiles?.tiles[name].matrix;
  }

  /**
   * The row and the column of the score under the pointer, or null.
   * @param {MouseEvent} event
   */
  scoreUnder(event) {
    const { target } = event;
    const S_ij = this.#matrix("S_ij");
    return S_ij && target instanceof Node && S_ij.element.contains(target) ? S_ij.under(event) : null;
  }

  /**
   * Outline a score's row of Q and row of K; null: none.
   * @param {[r: number, c: number] | null} score
   */
  outline(score) {
    this.#matrix("Q_i")?.outline(score && score[0]);
    this.#matrix("K_j")?.outline(score && score[1]);
  }

  /**
   * The elements of a column of the state, one for each row.
   * @param {string} name
   */
  column(name) {
    return this.views.made.table.column(name);
  }
}

/**
 * The part of the capacity that the tiles take.
 * @param {{ sram: number[] }} frames
 */
function room({ sram: [held, capacity] }) {
  const fits = held <= capacity;
  const bar = h("i", { style: `width:${Math.min(100, (100 * held) / capacity)}%` });
  const text = fits ? `${bytes(held)} of ${bytes(capacity)}` : `${bytes(held)} of ${bytes(capacity)}: too much`;
  const element = h(
    "span",
    { class: `flash-room${fits ? "" : " flash-over"}` },
    h("span", { class: "flash-meter", "aria-hidden": "true" }, bar),
    h("span", { class: fits ? "flash-note" : "flash-strong" }, text),
  );
  return { element, take() {} };
}

/** The tiles that are held now. */
class Tiles {
  /** @type {Frames} */
  frames;

  constructor() {
    const names = ["Q_i", "K_j", "V_j", "S_ij", "P_ij"];
    this.tiles = Object.fromEntries(names.map((name) => [name, new NamedTile(name)]));
    const elements = Object.values(this.tiles).map(({ element }) => element);
    this.element = div("flash-tiles", elements);
  }

  /** @param {Frames} frames */
  take(frames) {
    this.frames = frames;
    const { B_r, B_c, d } = frames;
    const all = cellsIn(TILES, Math.max(B_r, B_c), 3 * d + 2 * B_c);
    const scores = all ?? cellsIn(TILES - 3 * heatWidth(d), B_r, 2 * B_c); // at least the scores with numbers
    this.tiles.Q_i.resize(B_r, d, all);
    for (const name of ["K_j", "V_j"]) this.tiles[name].resize(B_c, d, all);
    for (const name of ["S_ij", "P_ij"]) this.tiles[name].resize(B_r, B_c, scores);
    this.element.title = all ? "" : WITHOUT_NUMBERS;
  }

  /**
   * @param {At<ForwardStep>} at
   * @param {Colours} colour
   */
  draw({ step, part, reached }, colour) {
    const { numbers, peaks, inputs, d } = this.frames;
    const since = { Q_i: "load", K_j: "load", V_j: "load", S_ij: "scores", P_ij: "weights" };
    for (const [name, first] of Object.entries(since)) {
      const { matrix, size } = this.tiles[name];
      const [start, stop] = step?.[name[0] === "K" || name[0] === "V" ? "cols" : "rows"] ?? [0, 0];
      const dropped = part === "store" && name !== "Q_i"; // the tile is finished
      const cols = name[0] in inputs ? d : (step?.n_c ?? 0);
      setText(size, step ? `${stop - start} × ${cols}` : "");
      if (!step || dropped || !reached(first)) {
        matrix.clear();
        continue;
      }
      const offset = name[0] in inputs ? inputs[name[0]] + start * d : step[name];
      matrix.draw(numbers, offset, stop - start, cols, peaks[name[0]], colour);
    }
  }
}
