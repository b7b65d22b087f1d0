// A page with Python: its cells, its widgets, and what its reader wrote.

import { keepFiles } from "../kept_files.js";
import { Bar } from "./bar.js";
import { Cell } from "./cell.js";
import { watchKeyboard } from "./keys.js";
import { Ended, Python } from "./python.js";
import { allWritten, takeAway } from "./written.js";

const STOPPED = "You have stopped this cell.";

export class Page {
  /** @param {any} live what build.py wrote about Python and the cells of this chapter */
  constructor(live) {
    this.live = live;
    this.chapter = live.chapter;
    document.documentElement.dataset.live = "";
    this.loading = new Map(); // the scripts of widgets
    const bar = new Bar(() => this.python.end(new Ended(STOPPED)));
    const texts = () => ({
      sources: Object.fromEntries(this.cells.map(({ id, text }) => [id, text])),
      changed: this.cells.filter(({ isChanged }) => isChanged).map(({ id }) => id),
    });
    this.python = new Python(live, texts, (state) => {
      bar.tell(state, this.python.waiting.size > 0);
      document.documentElement.dataset.python = state.kind; // for tests
      if (state.kind === "ready" && this.kept !== this.python.starts) this.#keepParts();
    });
    const written = allWritten()[this.chapter] ?? {};
    /** @type {NodeListOf<HTMLElement>} */
    const roots = document.querySelectorAll(".cell[data-cell]");
    /** @type {Cell[]} */
    this.cells = [];
    for (const root of roots) this.cells.push(new Cell(root, this, written[String(root.dataset.cell)]));
    watchKeyboard();
    this.#startWritten();
  }

  #keepParts() {
    this.kept = this.python.starts;
    const { worker, notebook, parts } = this.live;
    void keepFiles([worker, notebook, ...parts.map(({ url }) => url.replace("../", ""))]);
  }

  /** The buttons at the end of the page, for all that was written in it. */
  #startWritten() {
    const said = document.querySelector("#written-said");
    document.querySelector("#written-save")?.addEventListener("click", () => {
      const cells = Object.fromEntries(this.cells.map(({ id, text }) => [id, text]));
      takeAway(this.live.notebook, `${this.chapter}.ipynb`, cells).catch((error) => said && (said.textContent = error.message));
    });
    document.querySelector("#written-delete")?.addEventListener("click", () => {
      for (const cell of this.cells) cell.reset();
      if (said) said.textContent = "All changes are undone.";
    });
    this.changed();
  }

  /** A reader has written something, or undone it. */
  changed() {
    const button = document.querySelector("#written-delete");
    if (button) /** @type {HTMLButtonElement} */ (button).disabled = !this.cells?.some(({ isChanged }) => isChanged);
  }

  /** The cell that checks the answer in a stub. */
  checkOf(stub) {
    const cell = this.cells[this.cells.indexOf(stub) + 1];
    return cell?.isCheck ? cell : undefined;
  }

  /** Ask Python for what a widget needs; cell: the one that shows the widget. */
  async take(model, cell) {
    if (!model.link || model.link.start !== this.python.starts || !this.python.worker) {
      const answer = await this.python.ask({ do: "show", cell });
      const raised = [...(answer.first ?? []).map((one) => one.raised), ...(answer.outputs ?? []).map((one) => one.kind === "raises" && one.text)];
      if (!answer.model) throw Error(raised.filter(Boolean)[0] ?? "its cell shows no widget");
      this.follow(answer.model, model);
    }
    const changes = Object.fromEntries([...model.touched].map((name) => [name, model.get(name)]));
    await this.python.ask({ do: "take", model: model.link.id, changes });
  }

  /** Pass on Python's changes of a model. */
  follow(id, model) {
    model.link = { id, start: this.python.starts };
    this.python.heard.set(id, (changes) => model.receive(changes));
  }

  /** Load the script and the style sheet of a class of widgets, if this page does not have them. */
  loadWidget(name) {
    if (globalThis.flashSite.widgets[name]) return Promise.resolve();
    if (!this.loading.has(name)) {
      const [script, sheet] = this.live.widgets[name];
      for (const href of [this.live.sheet, sheet]) {
        if (document.querySelector(`link[href="${href}"]`)) continue;
        document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href }));
      }
      const element = Object.assign(document.createElement("script"), { src: script });
      const loaded = new Promise((done, fail) => {
        element.addEventListener("load", done);
        element.addEventListener("error", () => fail(Error(`${script} could not be loaded`)));
      });
      document.head.append(element);
      this.loading.set(name, loaded);
    }
    return this.loading.get(name);
  }
}

/** The page's Python, if the site has it: not on a page opened as a file, which cannot start a worker. */
export function startLive() {
  const cells = document.querySelector("#cells")?.textContent;
  const { live } = globalThis.flashSite;
  if (!cells || !live || !location.protocol.startsWith("http")) return undefined;
  const { own, ...about } = JSON.parse(cells); // own: the files that only this page needs
  live.parts.push(...own);
  for (const { packed } of own) live.packed += packed;
  return new Page(Object.assign(live, about));
}
