// Matrices as heat maps, with their numbers where there is room.

const CELL = { width: [27, 30], height: [16, 18] }; // the smallest and the largest that can hold a number, in pixels
const ROWS = 92; // for the rows of a tile, in pixels
const HEAT = { width: 88, height: 66, cell: { width: 18, height: 10 } }; // of a tile without numbers

/** The width of a heat map of so many columns, in pixels. */
const heatWidth = (cols) => cols * between(1, HEAT.width / cols, HEAT.cell.width);

/** The size of cells with numbers where `cols` of them have to fit into a width, and `rows`; null if they do not. */
function cellsIn(room, rows, cols) {
  const [width, height] = [room / cols, ROWS / rows].map(Math.floor);
  if (width < CELL.width[0] || height < CELL.height[0]) return null;
  return { width: Math.min(width, CELL.width[1]), height: Math.min(height, CELL.height[1]) };
}

/**
 * A tile under its name, and beside the name room for its size. cell: the size of cells with numbers, or null for
 * a heat map without; a column can be drawn like the tile `beside` it.
 */
function namedTile(name, rows, cols, cell, { title = symbol(name), beside } = {}) {
  const height = between(1, HEAT.height / rows, HEAT.cell.height);
  const width = beside ? HEAT.cell.width : heatWidth(cols) / cols;
  const matrix = new Matrix({ name, rows, cols, ...(cell ?? { width, height }), numbers: Boolean(cell) });
  const size = note();
  return { matrix, size, element: h("div", {}, div("flash-name", title, " ", size), matrix.element) };
}

/**
 * A matrix drawn as a heat map: with its numbers where they are few enough (cells are elements then), else as a
 * canvas, or one row as a gradient. The full value is told under the pointer. It has room for rows x cols; what is drawn may be smaller.
 */
class Matrix {
  constructor({ name, rows, cols, width, height, numbers }) {
    Object.assign(this, { name, rows, cols, width, height, numbers, shown: null });
    const size = `width:${cols * width}px;height:${rows * height}px`;
    if (numbers) {
      this.element = h("div", { class: "flash-matrix", role: "img", style: size });
      this.element.style.lineHeight = `${height - 1}px`;
      this.element.style.gridTemplate = `repeat(${rows}, ${height}px) / repeat(${cols}, ${width}px)`;
      this.cells = Array.from({ length: rows * cols }, () => h("span", { class: "flash-cell" }));
      this.drawn = this.cells.map(() => ({}));
      this.element.append(...this.cells);
    } else if (rows === 1) {
      this.element = h("div", { class: "flash-matrix", role: "img", style: size });
    } else {
      this.element = h("canvas", { class: "flash-matrix", role: "img", style: size });
      this.gap = Math.min(width, height) >= 5 ? 1 : 0;
      const ratio = Math.max(1, devicePixelRatio);
      this.element.width = this.gap ? Math.round(cols * width * ratio) : cols; // small cells: one pixel each
      this.element.height = this.gap ? Math.round(rows * height * ratio) : rows;
      if (Math.min(width, height) >= 1) this.element.style.imageRendering = "pixelated";
    }
    this.element.dataset.name = name;
    this.element.addEventListener("pointermove", (event) => this.#tell(event));
  }

  /** Draw rows x cols numbers of `data` from `offset` on; `peak` is the size of the strongest colour. */
  draw(data, offset, rows, cols, peak, colour) {
    this.shown = { data, offset, rows, cols };
    this.element.classList.remove("flash-cleared");
    this.#label(`${this.name}, ${rows} by ${cols}`);
    if (this.numbers) return this.#drawCells(peak, colour);
    if (!this.#isNew(peak, colour)) return;
    if (this.rows === 1) this.#drawRow(peak, colour);
    else this.#drawCanvas(peak, colour);
  }

  #label(text) {
    if (this.label === text) return;
    this.label = text;
    this.element.setAttribute("aria-label", text);
  }

  /** One row as a gradient with hard stops: many canvases would make each frame slower. */
  #drawRow(peak, colour) {
    const { data, offset, cols } = this.shown;
    const stops = Array.from({ length: cols }, (_, c) => {
      const x = data[offset + c];
      return `${Number.isNaN(x) ? "transparent" : colour.css(x, peak)} 0 ${(100 * (c + 1)) / cols}%`;
    });
    this.element.style.backgroundImage = `linear-gradient(to right, ${stops.join()})`;
  }

  /** Whether it would look different: painting costs more than comparing its numbers. */
  #isNew(peak, colour) {
    const { data, offset, rows, cols } = this.shown;
    const values = data.slice(offset, offset + rows * cols); // a copy: what is in data may change
    const before = this.painted;
    this.painted = { values, rows, cols, peak, colour };
    if (!before || before.rows !== rows || before.cols !== cols) return true;
    return (
      before.peak !== peak || before.colour !== colour || values.some((x, k) => !Object.is(x, before.values[k]))
    );
  }

  clear() {
    this.shown = null;
    this.painted = null;
    this.element.classList.add("flash-cleared");
    this.#label(`${this.name}, empty`);
    if (this.numbers) this.cells.forEach((_, k) => this.#drawCell(k, "flash-cell flash-empty", "", ""));
    else if (this.rows === 1) this.element.style.backgroundImage = "none";
    else this.element.getContext("2d").clearRect(0, 0, this.element.width, this.element.height);
  }

  #drawCells(peak, colour) {
    const { data, offset, rows, cols } = this.shown;
    for (let r = 0; r < this.rows; r++) {
      for (let c = 0; c < this.cols; c++) {
        const k = r * this.cols + c;
        if (r >= rows || c >= cols) {
          this.#drawCell(k, "flash-cell flash-empty", "", "");
          continue;
        }
        const x = data[offset + r * cols + c];
        const kind = x === -Infinity ? "flash-cell flash-cut" : "flash-cell";
        this.#drawCell(k, kind, colour.css(x, peak), short(x));
      }
    }
  }

  /** Change only what differs in a cell: most of the time of a step goes into this. */
  #drawCell(k, kind, background, text) {
    const [cell, drawn] = [this.cells[k], this.drawn[k]];
    if (drawn.kind !== kind) cell.className = drawn.kind = kind;
    if (drawn.background !== background) cell.style.backgroundColor = drawn.background = background;
    if (drawn.text !== text) cell.textContent = drawn.text = text;
  }

  #drawCanvas(peak, colour) {
    const { data, offset, rows, cols } = this.shown;
    const context = this.element.getContext("2d");
    if (!this.element.width || !this.element.height) return;
    if (!this.gap) {
      const image = context.createImageData(this.cols, this.rows);
      const pixels = new Uint32Array(image.data.buffer);
      for (let r = 0; r < rows; r++)
        for (let c = 0; c < cols; c++) {
          const x = data[offset + r * cols + c];
          if (!Number.isNaN(x)) pixels[r * this.cols + c] = colour.pixel(x, peak); // else nothing is there yet
        }
      context.putImageData(image, 0, 0);
      return;
    }
    const [width, height] = [this.element.width / this.cols, this.element.height / this.rows];
    context.clearRect(0, 0, this.element.width, this.element.height);
    for (let r = 0; r < rows; r++) {
      const [top, bottom] = [Math.round(r * height), Math.round((r + 1) * height) - this.gap];
      for (let c = 0; c < cols; c++) {
        const x = data[offset + r * cols + c];
        if (Number.isNaN(x)) continue;
        const [left, right] = [Math.round(c * width), Math.round((c + 1) * width) - this.gap];
        context.fillStyle = colour.css(x, peak);
        context.fillRect(left, top, right - left, bottom - top);
      }
    }
  }

  #tell(event) {
    const box = this.element.getBoundingClientRect();
    const r = Math.floor(((event.clientY - box.top) / box.height) * this.rows);
    const c = Math.floor(((event.clientX - box.left) / box.width) * this.cols);
    const { data, offset, rows, cols } = this.shown ?? { rows: 0 };
    this.element.title = r < rows && c < cols ? `[${r}, ${c}]: ${exact(data[offset + r * cols + c])}` : "";
  }
}
