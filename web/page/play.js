// Widgets and cards play from the state in the page. A different setting is looked up in a record, if there is one,
// or computed by the page's own Python, if it has it.

import { keep, progress } from "./kept.js";
import { isRecorded, recordedFrames } from "./recorded.js";

/** Put the buffers of a widget back into its state, where Python would have sent them. */
function restore({ state, buffers }) {
  for (const { path, data } of buffers) {
    const place = path.slice(0, -1).reduce((value, key) => value[key], state);
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    place[path.at(-1)] = new DataView(bytes.buffer);
  }
  return state;
}

/**
 * The model of a widget, as anywidget describes it, without a server: changes stay on this page. `ask` is called when
 * the widget asks for a different setting, if anything can answer.
 */
function modelOf(state, ask) {
  const heard = new Map();
  const listeners = (event) => heard.get(event) ?? heard.set(event, new Set()).get(event);
  let asked = state.asked;
  const model = {
    answers: Boolean(ask),
    widget_manager: ask && { kernel: { status: "busy" } }, // Python counts as busy while it is asked
    touched: new Set(), // the traits that the widget has set
    get: (name) => state[name],
    set(name, value) {
      model.touched.add(name);
      model.receive({ [name]: value });
    },
    receive(changes) {
      const changed = Object.entries(changes).filter(([name, value]) => state[name] !== value);
      for (const [name, value] of changed) state[name] = value;
      for (const event of [...changed.map(([name]) => `change:${name}`), ...(changed.length ? ["change"] : [])])
        listeners(event).forEach((listener) => listener());
    },
    on: (event, listener) => void listeners(event).add(listener),
    off(event, listener) {
      if (listener) listeners(event).delete(listener);
      else if (event) heard.delete(event);
      else heard.clear();
    },
    save_changes() {
      if (!ask || state.asked === asked) return;
      asked = state.asked;
      void ask(model);
    },
    send() {},
  };
  return model;
}

/** Answers a widget: from a record if that has the setting, and else from Python, if the page has it. */
function answerer({ record, cell }, python) {
  if (!record && !python) return undefined;
  let busy = false;
  const reply = async (model) => {
    const asked = model.get("asked");
    try {
      if (record && isRecorded(model, record)) {
        const frames = await recordedFrames(model, record);
        if (model.get("asked") === asked) model.receive({ frames, refused: "", heard: asked });
      } else await python.take(model, cell);
    } catch (error) {
      if (model.get("asked") === asked) model.receive({ refused: `This setting is not available (${error.message}).`, heard: asked });
    }
  };
  return async (model) => {
    if (busy) return; // requests in the meantime are sent after this answer
    busy = true;
    for (let asked; asked !== model.get("asked"); ) {
      asked = model.get("asked");
      await reply(model);
    }
    busy = false;
  };
}

/** Restore what a reader typed into a card, and store it whenever it changes. */
function remember(model) {
  const { name } = model.get("card");
  model.set("given", progress().predicted[name] ?? {});
  model.on("change:given", () => keep(({ predicted }) => (predicted[name] = model.get("given"))));
}

/** Resolves when a place can be seen: a widget in a closed cover would find no room to draw in. */
function opened(place) {
  const cover = place.closest(".cover:not([open])");
  return cover && new Promise((done) => cover.addEventListener("toggle", done, { once: true }));
}

/** Open what is below questions once all of them are answered, or their answers were shown. */
function uncover() {
  const cards = new Map();
  /** @type {NodeListOf<HTMLElement>} */
  const places = document.querySelectorAll(".card");
  for (const place of places) cards.set(place.dataset.card, place.querySelector(".flash-card"));
  const isTold = (name) => {
    const root = cards.get(name);
    const { outcome } = root?.dataset ?? {};
    return outcome === "right" || (outcome === "wrong" && !root.querySelector(".flash-card-next"));
  };
  /** @type {NodeListOf<HTMLDetailsElement>} */
  const covers = document.querySelectorAll(".cover:not([data-opened])");
  for (const cover of covers) {
    if (!String(cover.dataset.cards).split(" ").every(isTold)) continue;
    cover.open = true;
    cover.dataset.opened = ""; // once: a reader may close it again
  }
}

/** Render a widget in its place, and then remove what was there before. */
async function play(place, told, python) {
  const el = document.createElement("div");
  place.append(el);
  const model = modelOf(told.state, answerer(told, python));
  if (told.class === "PredictionCard") {
    remember(model);
    place.dataset.card = model.get("card").name;
  }
  try {
    await globalThis.flashSite.widgets[told.class].render({ model, el });
    place.classList.add("plays");
  } catch (error) {
    el.remove(); // the old content comes back
    place.classList.add("fails");
    console.error(error);
  }
  return model;
}

/** Play the widget that Python has just shown in a cell. */
export async function playFrom(python, cell, place, { class: name, model: id, state }) {
  await python.loadWidget(name);
  const model = await play(place, { class: name, state, cell }, python);
  python.follow(id, model);
}

/** What the page stores of its widgets, by cell. */
const storedWidgets = () => JSON.parse(document.querySelector("#states")?.textContent ?? "{}");

/** What the page stores of the widget of a cell. */
export const storedWidget = (cell) => storedWidgets()[cell];

/** Play a widget as it was stored, with no settings. */
export function playStored(place, told) {
  restore(told);
  return play(place, told, undefined);
}

/** @param {any} python of this page, if it has one */
export async function startWidgets(python) {
  const states = storedWidgets();
  /** @type {NodeListOf<HTMLElement>} */
  const places = document.querySelectorAll("[data-place]");
  for (const place of places) {
    const cell = String(place.dataset.place);
    const told = states[cell];
    restore(told);
    const answers = place.matches(".widget") && !place.closest("[data-cell]") ? undefined : python; // its cell cannot run
    if (told.record && !answers) told.state.frames.controls = told.record.settings; // for the others there is no answer
    const start = () => play(place, { ...told, cell }, answers);
    const waits = opened(place);
    if (waits) {
      void waits.then(start);
      continue;
    }
    await start();
    await new Promise((done) => setTimeout(done)); // the page answers meanwhile
  }
  uncover();
  const watch = new MutationObserver(uncover);
  for (const card of document.querySelectorAll(".card"))
    watch.observe(card, { subtree: true, childList: true, attributeFilter: ["data-outcome"] });
}
