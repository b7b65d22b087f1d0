// The loop on the first page: it plays up to its mistake; a visitor mends the line, and it plays again. What was recorded
// when the site was made plays at once, and anything else once Python has been fetched.

import { megabytes } from "./live/bar.js";
import { tool } from "./live/cell.js";
import { editor } from "./live/editor.js";
import { note, printed } from "./live/outputs.js";
import { allWritten, write } from "./live/written.js";
import { makePressable } from "./loop_lines.js";
import { playFrom, playStored, storedWidget } from "./play.js";

const HINT =
  "m is a row's largest score so far. When it grows, what the row has summed in O_acc must shrink by alpha: alpha[:, None] has the " +
  "factors of all rows, as a column.";
const NOT_HERE = "These pages have no Python, so only the mended line was recorded for them.";
const TO_FETCH = "Only the mended line was recorded. To run yours, this page fetches Python: press the button.";
const RECORDED = "Recorded when this page was made.";
const RIGHT_LINE = "✓";
const NOT_THIS = "That line is right. Which one is wrong?";
const HERE = "index"; // the page, among what was written

const withoutSpaces = (text) => text.replace(/\s/g, "");

/** Put the numbers of a verdict behind its sentence. */
function fold(listing) {
  const details = document.createElement("details");
  listing.before(details);
  details.append(Object.assign(document.createElement("summary"), { textContent: "The numbers" }), listing);
}

const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Load what the page shows once the line is right. */
function loadMended(address) {
  const script = Object.assign(document.createElement("script"), { src: address });
  const loaded = new Promise((done, fail) => {
    script.addEventListener("load", () => done(globalThis.flashSite.mended));
    script.addEventListener("error", () => fail(Error(`${address} could not be loaded`)));
  });
  document.head.append(script);
  return loaded;
}

/** Mark the lines of the loop that a player shows at work. @param {Element} root @param {any} player */
function markLines(root, { dataset, flashWidget }) {
  const atWork = flashWidget.model.get("frames").lines[dataset.part] ?? [];
  for (const line of root.querySelectorAll(".loop-line")) line.classList.toggle("now", atWork.includes(String(line.textContent).trim()));
}

/** Play from the beginning, and stop where the player says that something goes wrong. */
function playUpToMistake(player, stopped) {
  const { transport } = player.flashWidget;
  transport.seek(0);
  transport.play();
  const watch = new MutationObserver(() => {
    if (player.querySelector(".flash-verdict:not(:empty)") && transport.position < transport.last) transport.pause();
    if (transport.playing) return;
    watch.disconnect();
    stopped();
  });
  watch.observe(player, { attributeFilter: ["data-frame"] });
}

class Loop {
  /**
   * @param {HTMLElement} root
   * @param {any} told what build.py wrote about the loop
   * @param {any} page with Python, if the site has it
   */
  constructor(root, told, page) {
    this.root = root;
    this.told = told;
    this.page = page;
    const find = (name) => /** @type {HTMLElement} */ (root.querySelector(name));
    this.line = find(".mistake");
    this.said = find(".verdict");
    this.tools = find(".mending");
    this.idea = /** @type {HTMLDetailsElement} */ (find("details"));
    this.place = find(".widget");
    this.onward = find(".doors") ?? document.createElement("p");
    this.asked = find(".asked");
    this.first = [...this.said.childNodes];
    page?.cells.push(...Object.keys(told.texts).map((id) => this.#cell(id, () => told.texts[id])));
    page?.cells.push(this.#cell("loop", () => this.text));
    this.runs = tool("Run", () => void this.run());
    const size = page && megabytes(page.live.packed);
    this.fetches = tool(`Run it here: fetches Python, ${size} MB, once`, () => void this.run(true));
    this.fills = tool("Write it for me", () => this.#write(told.mended));
    this.breaks = Object.assign(tool("Put the mistake back", () => this.#write(told.wrong)), { className: "back" });
    this.hint = note(HINT);
    this.mends = tool("Mend it", () => this.#openAtFault());
    this.tells = tool("Which line?", () => this.#tell());
    this.tools.append(this.tells);
    /** @type {NodeListOf<HTMLElement>} */
    const lines = root.querySelectorAll(".code .loop-line");
    makePressable([...lines], (line) => this.#judge(line));
    this.kept = allWritten()[HERE]?.loop;
    if (this.kept !== undefined) this.#open(this.kept);
  }

  /** A cell, as the page tells Python about it. */
  #cell(id, textNow) {
    return {
      id,
      isChanged: id === "loop",
      get text() {
        return textNow();
      },
    };
  }

  /** What the visitor has written in place of the line. */
  get own() {
    return this.field ? this.field.value : this.told.wrong;
  }

  get text() {
    const { above, indent, below } = this.told;
    const lines = this.own.split("\n").map((line) => (line.trim() ? indent + line : line));
    return `${above}${lines.join("\n")}\n${below}`;
  }

  /** What was recorded of what the visitor has written: a function that returns it, or undefined. */
  get record() {
    const own = withoutSpaces(this.own);
    if (own === withoutSpaces(this.told.wrong)) return () => ({ player: storedWidget("play") });
    if (own === withoutSpaces(this.told.mended)) return () => loadMended(this.told.record);
    return undefined;
  }

  /** Play it as it is, or as the visitor left it. */
  begin() {
    if (this.kept === undefined) return this.#follow(() => (this.root.dataset.stopped = ""));
    if (!this.record) return this.#follow();
    this.restores = true;
    void this.run().finally(() => (this.restores = false));
  }

  /** A visitor has pressed a line: is it the wrong one? */
  #judge(line) {
    if (line.parentElement === this.line) return this.#openAtFault();
    line.dataset.judged = RIGHT_LINE;
    this.asked.textContent = NOT_THIS;
  }

  /** Say which line it is, and why. */
  #tell() {
    Object.assign(this.root.dataset, { stopped: "", found: "", told: "" });
    this.tells.replaceWith(this.mends);
    this.mends.focus();
  }

  /** Play the player that is there, with the lines at work. */
  #follow(stopped = () => {}) {
    const player = this.place.querySelector(".flash-widget[data-frame]");
    if (!player) return stopped();
    new MutationObserver(() => markLines(this.root, player)).observe(player, { attributeFilter: ["data-frame"] });
    if (isStill()) stopped();
    else playUpToMistake(player, stopped);
  }

  /** Put the line into an editor. */
  #open(text = this.told.wrong) {
    const { element, field } = editor(text, "the line to mend", () => void this.run());
    this.field = field;
    field.addEventListener("input", () => {
      write(HERE, (cells) => {
        if (this.own === this.told.wrong) delete cells.loop;
        else cells.loop = this.own;
      });
      this.#compare();
    });
    this.line.replaceChildren(element);
    this.tools.replaceChildren(this.hint, this.runs, this.fetches, this.fills, this.onward, this.breaks);
    Object.assign(this.root.dataset, { stopped: "", found: "" });
    this.#compare();
  }

  /** Open it where something is missing. */
  #openAtFault() {
    this.#open();
    const at = this.told.wrong.indexOf("= ") + 2;
    this.field?.focus();
    this.field?.setSelectionRange(at, at);
  }

  /** Mark a verdict that is on another line. */
  #compare() {
    this.root.toggleAttribute("data-old", this.own !== (this.checked ?? this.told.wrong));
    this.#choose();
  }

  /** Write a line in place of what is there, and run it. */
  #write(text) {
    const field = /** @type {HTMLTextAreaElement} */ (this.field);
    field.value = text;
    field.dispatchEvent(new Event("input"));
    void this.run();
  }

  /** Show the buttons for what can be done with what is written. */
  #choose() {
    const { record, page } = this;
    const isReady = page?.python.ready;
    const isDone = this.root.dataset.outcome === "right" && this.own === this.checked;
    this.onward.hidden = !isDone;
    this.runs.hidden = isDone || (!record && !isReady && Boolean(page));
    this.fetches.hidden = isDone || !page || isReady || (record && !this.ran);
    this.breaks.hidden = this.own === this.told.wrong;
    this.fills.hidden = this.hint.hidden = isDone || withoutSpaces(this.own) === withoutSpaces(this.told.mended);
  }

  /** Run the loop: for real if Python is there or the visitor wants it, else from the record, if there is one. */
  async run(really = false) {
    if (this.busy) return;
    this.busy = true;
    this.checked = this.own;
    this.root.removeAttribute("data-old");
    this.root.setAttribute("aria-busy", "true");
    try {
      if (really || this.page?.python.ready) await this.#run();
      else if (this.record) await this.#showRecord(await this.record());
      else if (this.page) this.#offer();
      else this.said.replaceChildren(note(NOT_HERE));
    } catch (error) {
      this.said.replaceChildren(printed(error.message, "raises"));
    }
    this.busy = false;
    this.root.removeAttribute("aria-busy");
    this.#choose();
  }

  /** Say what it takes to run a line that was not recorded. */
  #offer() {
    this.said.replaceChildren(note(TO_FETCH));
    delete this.root.dataset.outcome;
    this.fetches.focus();
  }

  async #showRecord({ player, verdict }) {
    await this.#play((place) => playStored(place, player));
    if (verdict) this.#say(verdict, "right", note(RECORDED));
    else {
      Object.assign(this.root.dataset, { outcome: "wrong", told: "" });
      this.said.replaceChildren(...this.first);
    }
  }

  async #run() {
    delete this.root.dataset.outcome;
    this.said.replaceChildren(note("Running your line …"));
    await this.#outputs("loop"); // by itself: if it cannot be read, nothing is known to need it
    const [shown] = await this.#outputs("play");
    await this.#play((place) => playFrom(this.page, "play", place, shown));
    const [checked] = await this.#outputs("check");
    this.#say(checked.html, checked.verdict.outcome);
  }

  /** Run a cell in the page's Python, and return what it shows. */
  async #outputs(cell) {
    const { first, outputs } = await this.page.python.run(cell);
    const raised = first.find((one) => one.raised)?.raised ?? outputs.find(({ kind }) => kind === "raises")?.text;
    if (raised) throw Error(raised);
    return outputs.filter(({ kind }) => kind !== "out" && kind !== "err");
  }

  /** Show what the check says. */
  #say(html, outcome, ...more) {
    this.root.dataset.outcome = outcome;
    const made = Object.assign(document.createElement("div"), { className: "made", innerHTML: html });
    for (const listing of made.querySelectorAll("pre")) fold(listing);
    this.said.replaceChildren(made, ...more);
    this.idea.open ||= outcome === "right" && !this.restores;
  }

  /** Render another player before the old one is taken away, so that what is below stays where it is, and play it. */
  async #play(render) {
    const place = Object.assign(document.createElement("div"), { className: "widget" });
    this.place.after(place);
    await render(place);
    if (!place.querySelector(".flash-widget[data-frame]")) return place.remove(); // nothing to play: the last one stays
    this.place.remove();
    this.place = place;
    this.ran = true;
    this.#follow();
    if (!this.restores && place.getBoundingClientRect().top > innerHeight / 2) this.said.scrollIntoView({ behavior: isStill() ? "auto" : "smooth" });
  }
}

/** The loop of the first page, which is still to begin. @param {any} page with Python, if the site has it */
export function loopOf(page) {
  /** @type {HTMLElement | null} */
  const root = document.querySelector("#loop");
  const told = document.querySelector("#told")?.textContent;
  return root && told ? new Loop(root, JSON.parse(told), page) : undefined;
}
