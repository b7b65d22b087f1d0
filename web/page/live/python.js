// The Python of a page: a worker, started when it is first needed, and ended if its code does not end.

/** A question was not answered, since the worker was ended. */
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
   * @param {any} live what build.py wrote about the files and the cells
   * @param {() => { sources: Record<string, string>, changed: string[] }} texts the current texts of the cells
   * @param {(state: { kind: string, done?: number, all?: number, words?: string }) => void} tell reports its progress
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

  /** Ask the kernel, which answers questions in their order. */
  ask(question) {
    const reply = this.next++;
    return new Promise((done, fail) => {
      this.waiting.set(reply, { question, done, fail });
      if (!this.worker) this.start();
      else this.#send(reply);
    });
  }

  /** Run a cell, and first those that it needs. ended: how the previous run was stopped, if it was. */
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

  /** Take what a check reports while it runs, and stop it when it takes too long. */
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
   * End the worker. Its current question fails with the error, and those that wait go to a new worker. If the worker was
   * still being fetched, all questions fail, and nothing starts.
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

  /** It could not be fetched or started, or has died: all waiting questions fail, and the next one tries again. */
  #lose(why) {
    const words = this.ready ? `Python has ended: ${why}.` : `Python could not be started: ${why}.`;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    this.#stop();
    this.#say("lost", { words });
    for (const { fail } of waiting) fail(Error(words));
  }
}

/** An answer of the kernel: JSON in which { buffer: n } stands for the n-th bytes. */
function restored({ answer, buffers }) {
  if (!buffers.length) return JSON.parse(answer);
  const views = buffers.map((bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  const isOne = (value) => value && typeof value === "object" && "buffer" in value && Object.keys(value).length === 1;
  return JSON.parse(answer, (_, value) => (isOne(value) && !(value.buffer instanceof DataView) ? views[value.buffer] : value));
}
