// TilingLab: what a block size costs. Python computed all numbers and sentences; this draws them.

const KB = 1024; // bytes
const CELL = [46, 27]; // pixels, of the map
const SIDE = 244; // pixels, of S
const DOUBLINGS = 4; // of the strongest colour of the map: 16 times

const SETTINGS = {
  N: ["N", "N, rows of Q, K and V"],
  d: ["d", "d, head dimension"],
  B_r: ["B_r", "B_r, rows of a block of Q"],
  B_c: ["B_c", "B_c, rows of a block of K and V"],
  capacity: ["SRAM", "SRAM that a thread block can have, in KB"],
};
const DTYPES = [
  ["float16", "fp16", "2 bytes an item"],
  ["bfloat16", "bf16", "2 bytes an item"],
  ["float32", "fp32", "4 bytes an item"],
  ["float64", "fp64", "8 bytes an item, accumulated in fp64 too"],
];

/** A slider that steps through the values it is shown with. */
function stops(name, text, label, input) {
  let values = [];
  const range = h("input", {
    type: "range",
    min: 0,
    "aria-label": label,
    "data-name": name,
    oninput: () => input(values[range.value]),
  });
  const output = h("output", {});
  const element = h("label", { class: "flash-slider" }, symbol(text), range, output);
  const show = (value, all, unit = "") => {
    values = all;
    range.max = all.length - 1;
    range.value = all.indexOf(value);
    range.setAttribute("aria-valuetext", value + unit);
    setText(output, value + unit);
  };
  return { element, show };
}

const hatched = (name) =>
  svg(
    "pattern",
    { id: name, width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("path", { d: "M0 0V7", class: "flash-tiling-hatch" }),
  );

const key = (kind, ...words) =>
  h("span", {}, h("i", { class: `flash-tiling-key flash-tiling-key-${kind}` }), ...words);

const box = (x, y, width, height) => `M${x} ${y}h${width}v${height}h${-width}z`;

/** S, cut into tiles. Where there are too many, a square stands for several, as Python grouped them. */
class Tiles {
  constructor(id) {
    const path = (name) => (this[name] = svg("path", { class: `flash-tiling-${name}` }));
    this.picture = svg(
      "svg",
      { viewBox: `-1 -1 ${SIDE + 2} ${SIDE + 2}`, width: SIDE + 2, height: SIDE + 2, role: "img" },
      svg("defs", {}, hatched(`${id}-skipped`)),
      svg("rect", { width: SIDE, height: SIDE, class: "flash-tiling-skipped" }),
      svg("rect", { width: SIDE, height: SIDE, fill: `url(#${id}-skipped)` }),
      ["some", "whole", "lines", "one"].map(path),
    );
    this.names = ["T_r", "T_c", "tiles", "steps", "computed", "skipped"];
    this.counts = Object.fromEntries(this.names.map((name) => [name, h("dd", { "data-count": name })]));
    const terms = this.names.map((name) =>
      h("div", {}, h("dt", {}, name.includes("_") ? symbol(name) : name), this.counts[name]),
    );
    const legend = div(
      "flash-legend",
      key("whole", (this.share = h("span", {}))),
      key("skipped", "skipped: masked"),
      key("now", (this.one_tile = h("span", {}))),
      (this.keys = note()),
      (this.part = key("some", "computed in part")),
    );
    const picture = div("flash-tiling-cutting", this.picture, legend);
    this.element = panel("tiling-cut", "S, cut into tiles", (this.size = note()), picture, h("dl", {}, terms));
  }

  draw({ grid, N, B_r, B_c }) {
    const at = (x) => Math.round((x / N) * SIDE * 100) / 100;
    const [rows, cols] = [grid.rows.map(at), grid.cols.map(at)];
    const strips = (counts) =>
      counts.map((n, k) => (n ? box(0, rows[k], cols[n], rows[k + 1] - rows[k]) : "")).join("");
    this.whole.setAttribute("d", strips(grid.whole));
    this.some.setAttribute("d", strips(grid.some));
    const lines = [...cols.map((x) => `M${x} 0V${SIDE}`), ...rows.map((y) => `M0 ${y}H${SIDE}`)];
    this.lines.setAttribute("d", lines.join(""));
    this.one.setAttribute("d", box(0, 0, at(Math.min(B_c, N)), at(Math.min(B_r, N))));
    const { T_r, T_c, tiles, computed, tall, wide } = grid;
    const skipped = tiles - computed;
    const counts = { T_r, T_c, tiles, steps: computed, computed, skipped };
    for (const name of this.names) setText(this.counts[name], String(counts[name]));
    setText(this.share, `computed ${number((100 * computed) / tiles)}%`);
    setText(this.size, `${N} × ${N} scores`);
    setText(this.one_tile, `one tile, ${B_r} × ${B_c}`);
    const reduced = tall * wide > 1;
    const square = `Too many tiles to draw: a square stands for ${tall} × ${wide}.`;
    setText(this.keys, `${reduced ? square : "Each square is a tile."} A step computes one tile.`);
    this.part.style.visibility = reduced && skipped ? "visible" : "hidden";
    this.picture.setAttribute("aria-label", `S as ${T_r} by ${T_c} tiles, ${computed} of ${tiles} computed`);
  }
}

/** What each algorithm reads and writes. */
class Bytes {
  constructor() {
    this.flops = h("p", { class: "flash-note flash-tiling-flops" });
    this.rows = ["standard", "FA1", "FA2"].map((name) => {
      const part = (kind) => h("i", { class: `flash-tiling-part flash-tiling-${kind}` });
      const row = {
        name,
        read: part("read"),
        written: part("written"),
        level: h("i", { class: "flash-tiling-level" }),
      };
      for (const text of ["total", "ratio", "mark", "parts"])
        row[text] = h("span", { class: `flash-tiling-moved-${text}` });
      row.element = h(
        "div",
        { class: "flash-tiling-moved", "data-name": name },
        div("flash-tiling-moved-words", h("b", {}, name), row.total, row.ratio, row.mark, row.parts),
        div("flash-tiling-track", row.read, row.written, row.level),
      );
      return row;
    });
    const legend = div("flash-legend", key("read", "read"), key("written", "written"), key("level", "standard"));
    this.element = panel(
      "tiling-bytes",
      "Bytes moved, HBM to SRAM and back",
      note("one head; × standard"),
      this.rows.map((row) => row.element),
      legend,
      this.flops,
    );
  }

  draw({ traffic, flops, causal }) {
    const most = Math.max(...Object.values(traffic).map((moved) => moved.total));
    const standard = traffic.standard.total;
    for (const row of this.rows) {
      const { read, written, ratio, text } = traffic[row.name];
      row.read.style.width = `${(100 * read) / most}%`;
      row.written.style.width = `${(100 * written) / most}%`;
      row.level.style.left = `${(100 * standard) / most}%`;
      row.element.title = `${exact(read)} bytes read, ${exact(written)} written`;
      row.element.dataset.more = ratio > 1;
      setText(row.total, `${text.total} ${text.unit}`);
      setText(row.parts, `read ${text.read}, written ${text.written}`);
      if (row.name === "standard") continue;
      setText(row.ratio, `× ${number(ratio)}`);
      setText(row.mark, ratio > 1 ? "▲ more" : "");
    }
    const each = this.rows.map(({ name }) => `${name} ${number(flops / traffic[name].total)}`).join(", ");
    const counted = causal ? "2 N² d: half, as is the custom under a causal mask" : "4 N² d";
    setText(this.flops, `FLOPs: ${number(flops)} (${counted}). FLOPs per byte: ${each}.`);
  }
}

/** What one tile holds on chip, piece by piece, against what there is. */
class Sram {
  constructor() {
    this.pieces = ["Q_i", "K_j", "V_j", "O_acc", "S_ij", "m, l"].map((name, k) => {
      const kind = k < 3 ? "input" : "sum";
      const label = name.includes("_") ? symbol(name) : h("span", { class: "flash-symbol" }, name);
      const inside = label.cloneNode(true);
      const bar = h("i", { class: `flash-tiling-piece flash-tiling-${kind}` }, inside);
      const held = h("span", {});
      return { name, inside, bar, held, item: h("span", { "data-piece": name }, label, held) };
    });
    this.over = h("i", { class: "flash-tiling-over" });
    this.limit = h("i", { class: "flash-tiling-limit" });
    this.verdict = h("span", { class: "flash-tiling-verdict" });
    this.gpus = note();
    this.element = panel(
      "tiling-sram",
      "SRAM of one tile",
      this.verdict,
      div(
        "flash-tiling-track",
        this.pieces.map((piece) => piece.bar),
        this.over,
        this.limit,
      ),
      div(
        "flash-tiling-pieces",
        this.pieces.map((piece) => piece.item),
      ),
      div(
        "flash-legend",
        key("input", "inputs"),
        key("sum", "accumulated"),
        key("limit", "what there is"),
        key("over", "too much"),
      ),
      this.gpus,
    );
  }

  draw({ sram, capacity, N, B_r, B_c }) {
    const { held, room, fits, gpus } = sram;
    const full = Math.max(held, room);
    for (const piece of this.pieces) {
      const share = sram.pieces[piece.name] / full;
      piece.bar.style.width = `${100 * share}%`;
      piece.inside.hidden = share < 0.07;
      piece.item.title = `${sram.pieces[piece.name]} bytes`;
      setText(piece.held, `${number(sram.pieces[piece.name] / KB)} KB`);
    }
    this.limit.style.left = `${(100 * room) / full}%`;
    this.over.style.left = this.limit.style.left;
    this.over.hidden = fits;
    this.element.dataset.fits = fits;
    this.verdict.title = `${held} of ${room} bytes`;
    setText(this.verdict, `${number(held / KB)} of ${capacity} KB: ${fits ? "✓ fits" : "✗ does not fit"}`);
    const where = gpus ? `${capacity} KB is the most for one thread block on: ${gpus}. ` : "";
    const empty =
      Math.max(B_r, B_c) > N ? `A block of more than N = ${N} rows is held whole, in part empty. ` : "";
    setText(this.gpus, `${where}${empty}1 KB is 1024 bytes here.`);
  }
}
