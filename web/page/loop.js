// The loop on the first page: it plays up to its mistake; a visitor finds and mends the line, and it plays again. What was
// recorded when the site was made plays at once, and anything else once Python has been fetched.

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
const RECORDED = "What the check said of this very line when this page was made.";
const RUN_BEFORE = "Your line, run here before. The player shows the line that was recorded with this page.";
const NOT_PLAYED = "Your line could not be played, so the player still shows the one before.";
const THIS_ONE = "Yes, this one.";
const SHOWN = "It is this one.";
const NOT_THIS = ": this line is right. Which one is wrong?";
const KEYS = "Enter runs the line, Shift+Enter starts a new one.";
const HERE = "index"; // the page, among what was written

const withoutSpaces = (text) => text.replace(/\s/g, "");

/** Put the numbers of a verdict behind its sentence. */
function fold(listing) {
  const details = document.createElement("details");
  listing.before(details);
  details.append(Object.assign(document.createElement("summary"), { textContent: "The numbers" }), listing);
}

const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const isTouched = () => matchMedia("(pointer: coarse)").matches;

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
    this.asked = find(".asked");
    this.cause = find(".cause");
    this.first = [...this.said.children];
    this.cause.remove();
    page?.cells.push(...Object.keys(told.texts).map((id) => this.#cell(id, () => told.texts[id])));
    page?.cells.push(this.#cell("loop", () => this.taken ?? this.text));
    this.runs = Object.assign(tool("Run", () => void this.run()), { className: "run" });
    this.fills = tool("Write it for me", () => this.#write(told.mended));
    this.breaks = tool("Put the mistake back", () => this.#write(told.wrong));
    this.hint = note(HINT);
    this.tools.append(tool("Show me", () => this.#tell()));
    /** @type {NodeListOf<HTMLElement>} */
    const lines = root.querySelectorAll(".code .loop-line");
    root.querySelector(".below a")?.addEventListener("click", () => this.#replay());
    this.release = makePressable([...lines], (line) => this.#judge(line));
    const { loop, right } = allWritten()[HERE] ?? {};
    this.kept = loop;
    if (right) this.right = { line: loop, verdict: right };
    if (loop !== undefined) this.#open(loop);
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

  /** What is known of what the visitor has written, without Python: a function that returns it, or undefined. */
  get record() {
    const { told, right } = this;
    const own = withoutSpaces(this.own);
    const loads = async (more) => ({ ...(await loadMended(told.record)), ...more });
    if (right && right.line === this.own) return () => loads({ verdict: right.verdict, about: RUN_BEFORE });
    if (own === withoutSpaces(told.wrong)) return () => ({ player: storedWidget("play") });
    if (own === withoutSpaces(told.mended)) return () => loads({ about: RECORDED });
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
    if (line.parentElement === this.line) return this.#openAtFault(THIS_ONE);
    const code = Object.assign(document.createElement("code"), { textContent: line.textContent.trim() });
    this.asked.replaceChildren(code, NOT_THIS);
  }

  /** Say which line it is, and why. */
  #tell() {
    this.root.dataset.found = "";
    this.said.append(this.cause);
    this.#openAtFault(SHOWN);
  }

  /** Play the player that is there, with the lines at work. */
  #follow(stopped = () => {}) {
    const player = this.place.querySelector(".flash-widget[data-frame]");
    if (!player) return stopped();
    new MutationObserver(() => markLines(this.root, player)).observe(player, { attributeFilter: ["data-frame"] });
    if (isStill()) stopped();
    else playUpToMistake(player, stopped);
  }

  /** Play it once more. */
  #replay() {
    const player = this.place.querySelector(".flash-widget[data-frame]");
    if (player && !isStill()) playUpToMistake(player, () => {});
  }

  /** Put the line into an editor. */
  #open(text = this.told.wrong) {
    const { element, field } = editor(text, "the line to mend", () => void this.run(), { isLine: true });
    this.field = field;
    field.addEventListener("input", () => {
      this.#keep();
      this.#compare();
    });
    this.release();
    this.line.replaceChildren(element);
    this.asked.textContent = isTouched() ? "" : KEYS;
    this.tools.replaceChildren(this.runs, this.fills, this.breaks);
    this.said.after(this.hint);
    this.root.dataset.stopped = "";
    this.#compare();
  }

  /** Open it where something is missing, and show it with what runs it: in the upper half, since a keyboard may come. */
  #openAtFault(words) {
    this.#open();
    this.asked.prepend(`${words} `);
    const at = this.told.wrong.indexOf("= ") + 2;
    this.field?.focus({ preventScroll: true });
    this.field?.setSelectionRange(at, at);
    const behavior = isStill() ? "auto" : "smooth";
    if (isTouched()) this.line.scrollIntoView({ behavior });
    else this.runs.scrollIntoView({ block: "nearest", behavior });
  }

  /** Store the line, and with it that it was right. */
  #keep() {
    write(HERE, (cells) => {
      delete cells.loop;
      delete cells.right;
      if (this.own === this.told.wrong) return;
      cells.loop = this.own;
      if (this.right && this.right.line === this.own) cells.right = this.right.verdict;
    });
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
    const { root, runs, fills, breaks, hint, own, busy } = this;
    const isMended = root.dataset.outcome === "right" && own === this.checked;
    const isHere = this.record || !this.page || this.page.python.ready;
    const label = isHere ? "Run" : `Run it here: fetches Python, ${megabytes(this.page.live.packed)} MB, once`;
    runs.textContent = !busy ? label : isHere ? "Running …" : "Fetching Python …";
    runs.ariaDisabled = String(Boolean(busy));
    root.toggleAttribute("data-mended", isMended);
    const before = document.activeElement;
    runs.hidden = isMended;
    breaks.hidden = own === this.told.wrong;
    fills.hidden = isMended;
    hint.hidden = isMended || !("found" in root.dataset);
    /** @type {HTMLElement | null} */
    const door = isMended ? root.querySelector(".door") : runs;
    if (before instanceof HTMLButtonElement && before.hidden) (door ?? breaks).focus({ preventScroll: true });
  }

  /**
   * Run the loop: in Python if it is there, else from what is known, else in Python once it has been fetched. What is
   * written meanwhile is run afterwards, if that is asked for.
   */
  async run() {
    this.again = Boolean(this.busy);
    if (this.busy) return;
    this.busy = true;
    this.isPlayed = false;
    this.checked = this.own;
    this.taken = this.text;
    this.root.removeAttribute("data-old");
    delete this.root.dataset.outcome;
    this.root.setAttribute("aria-busy", "true");
    this.#choose();
    if (isTouched()) this.field?.blur(); // the phone's keyboard would cover what comes
    try {
      const { page, record } = this;
      if (page?.python.ready || (page && !record)) await this.#run();
      else if (record) await this.#showRecord(await record());
      else this.said.replaceChildren(note(NOT_HERE));
    } catch (error) {
      this.said.replaceChildren(printed(error.message, "raises"), ...this.#unplayed());
    }
    this.busy = false;
    this.taken = undefined;
    this.root.dataset.found = "";
    this.root.removeAttribute("aria-busy");
    this.#compare();
    if (this.again && this.own !== this.checked) return this.run();
    if (!this.restores) this.said.scrollIntoView({ block: "nearest", behavior: isStill() ? "auto" : "smooth" });
  }

  async #showRecord({ player, verdict, about }) {
    await this.#play((place) => playStored(place, player));
    if (verdict) this.#say(verdict, "right", note(about));
    else {
      this.root.dataset.outcome = "wrong";
      this.said.replaceChildren(...this.first);
    }
  }

  async #run() {
    const { own } = this;
    this.said.replaceChildren();
    await this.#outputs("loop"); // by itself: if it cannot be read, nothing is known to need it
    const [shown] = await this.#outputs("play");
    await this.#play((place) => playFrom(this.page, "play", place, shown));
    const [{ html, verdict }] = await this.#outputs("check");
    if (verdict.outcome === "right") this.right = { line: own, verdict: html };
    this.#keep();
    this.#say(html, verdict.outcome, ...this.#unplayed());
  }

  /** What is to be said if the player shows something else. */
  #unplayed() {
    return this.isPlayed ? [] : [note(NOT_PLAYED)];
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

  /**
   * Render another player before the old one is taken away, so that what is below stays where it is, and play it. If
   * there is nothing to play, the last one stays.
   */
  async #play(render) {
    const place = Object.assign(document.createElement("div"), { className: "widget" });
    this.place.after(place);
    await render(place);
    this.isPlayed = Boolean(place.querySelector(".flash-widget[data-frame]"));
    (this.isPlayed ? this.place : place).remove();
    if (!this.isPlayed) return;
    this.place = place;
    this.#follow();
  }
}

/** The loop of the first page, which is still to begin. @param {any} page with Python, if the site has it */
export function loopOf(page) {
  /** @type {HTMLElement | null} */
  const root = document.querySelector("#loop");
  const told = document.querySelector("#told")?.textContent;
  return root && told ? new Loop(root, JSON.parse(told), page) : undefined;
}
