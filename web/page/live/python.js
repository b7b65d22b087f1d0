// Python of a page: a worker, started when it is first needed, and ended when its code does not end.

/** What was asked was not answered: the worker was ended meanwhile. */
export class Ended extends Error {
  /** @param {string} message @param {string} [at] what a check had last announced, if it was ended in one */
  constructor(message, at) {
    super(message);
    this.at = at;
    this.anew = false; // whether another worker was started
  }
}

export class Python {
  /** @type {Worker | undefined} */
  worker;

  /**
   * @param {any} live what build.py tells of the files and the cells
   * @param {() => { sources: Record<string, string>, changed: string[] }} texts what stands in the cells now
   * @param {(state: { kind: string, done?: number, all?: number, words?: string }) => void} tell how far it is
   */
  constructor(live, texts, tell) {
    this.live = live;
    this.texts = texts;
    this.tell = tell;
    /** @type {Map<number, { question: any, done: (answer: any) => void, fail: (error: Error) => void }>} */
    this.waiting = new Map(); // in the order in which the worker takes them
    this.next = 0;
    this.starts = 0; // how often it was started: what a worker knew, the one after it does not
    /** @type {Map<string, (changes: any) => void>} */
    this.heard = new Map(); // by the id of a widget's model
    this.at = "";
  }

  get ready() {
    return this.kind === "ready";
  }

  /** Ask the kernel; the answer comes once all that was asked before is answered. */
  ask(question) {
    const reply = this.next++;
    return new Promise((done, fail) => {
      this.waiting.set(reply, { question, done, fail });
      if (!this.worker) this.start();
      else this.#send(reply);
    });
  }

  /** Run a cell, and what it needs before it. ended: how the run before this one was ended, if it was. */
  run(cell, ended) {
    return this.ask({ do: "run", cell, ...(ended ? { ended } : {}) });
  }

  start() {
    const { worker, parts, cells } = this.live;
    this.starts++;
    this.heard.clear();
    this.worker = new Worker(worker);
    this.worker.onmessage = ({ data }) => this.#take(data);
    this.worker.onerror = (event) => this.#lose(event.message || "its script could not be loaded");
    this.worker.postMessage({ parts, cells: JSON.stringify(cells) });
    this.#say("fetching", { done: 0, all: this.live.packed });
    for (const reply of this.waiting.keys()) this.#send(reply);
  }

  #send(reply) {
    const { question } = /** @type {any} */ (this.waiting.get(reply));
    const texts = question.do === "take" ? {} : this.texts();
    this.worker?.postMessage({ reply, question: JSON.stringify({ ...question, ...texts }) });
    if (this.ready) this.#say("ready");
  }

  #say(kind, more = {}) {
    this.kind = kind;
    this.tell({ kind, ...more });
  }

  #take(data) {
    if ("reply" in data) {
      const asked = this.waiting.get(data.reply);
      this.waiting.delete(data.reply);
      const answer = restored(data);
      if (answer?.failed) asked?.fail(Error(answer.failed));
      else asked?.done(answer);
      this.#say("ready");
    } else if ("event" in data) {
      const { event, model, changes } = restored({ answer: data.event, buffers: data.buffers });
      if (event === "state") this.heard.get(model)?.(changes);
    } else if ("watched" in data) this.#watch(...data.watched);
    else if ("fetched" in data) this.#say("fetching", { done: data.fetched, all: this.live.packed });
    else if ("failed" in data) this.#lose(data.failed);
    else this.#say(data.kind);
  }

  /** What is told while an answer is checked: it is ended when it takes too long. */
  #watch(kind, value) {
    clearTimeout(this.timer);
    if (kind === "started") {
      this.at = "";
      this.seconds = value * this.live.slower;
      this.until = performance.now() + 1000 * this.seconds;
    } else if (kind === "at") this.at = value;
    if (kind === "ended") return;
    const left = /** @type {number} */ (this.until) - performance.now();
    this.timer = setTimeout(() => this.end(new Ended(`did not end within ${this.seconds} seconds`, this.at)), left);
  }

  /**
   * End the worker. What it is at fails with the error, and what waits behind it is asked of a new one; if it was still
   * being fetched, all fails, and nothing starts.
   */
  end(error) {
    error.anew = this.ready;
    const all = [...this.waiting.entries()];
    this.#stop();
    for (const [reply, { fail }] of error.anew ? all.slice(0, 1) : all) {
      this.waiting.delete(reply);
      fail(error);
    }
    if (error.anew) this.start();
    else this.#say("none");
  }

  #stop() {
    clearTimeout(this.timer);
    this.worker?.terminate();
    this.worker = undefined;
    this.kind = undefined;
  }

  /** It could not be fetched or started, or has died: all who wait are told, and the next who asks tries again. */
  #lose(why) {
    const words = this.ready ? `Python has ended: ${why}.` : `Python could not be started: ${why}.`;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    this.#stop();
    this.#say("lost", { words });
    for (const { fail } of waiting) fail(Error(words));
  }
}

/** An answer of the kernel: JSON, in which { buffer: n } stands for the bytes n. */
function restored({ answer, buffers }) {
  if (!buffers.length) return JSON.parse(answer);
  const views = buffers.map((bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  const isOne = (value) => value && typeof value === "object" && "buffer" in value && Object.keys(value).length === 1;
  return JSON.parse(answer, (_, value) => (isOne(value) && !(value.buffer instanceof DataView) ? views[value.buffer] : value));
}
