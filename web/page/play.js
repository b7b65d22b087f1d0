// Widgets and cards play from the state that stands in the page: no Python is asked.

import { keep, progress } from "./kept.js";
import { answer } from "./recorded.js";

/** Put the buffers of a widget back to their places in its state, as Python would have sent them. */
function restore({ state, buffers }) {
  for (const { path, data } of buffers) {
    const place = path.slice(0, -1).reduce((value, key) => value[key], state);
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    place[path.at(-1)] = new DataView(bytes.buffer);
  }
  return state;
}

/**
 * The model of a widget, as anywidget describes it, without Python: what is set stays on this page. What is asked is
 * answered from a record, if there is one.
 */
function modelOf(state, record) {
  const heard = new Map();
  const listeners = (event) => heard.get(event) ?? heard.set(event, new Set()).get(event);
  const model = {
    answers: Boolean(record),
    get: (name) => state[name],
    set(name, value) {
      if (state[name] === value) return;
      state[name] = value;
      for (const event of [`change:${name}`, "change"]) listeners(event).forEach((listener) => listener());
    },
    on: (event, listener) => void listeners(event).add(listener),
    off(event, listener) {
      if (listener) listeners(event).delete(listener);
      else if (event) heard.delete(event);
      else heard.clear();
    },
    save_changes: () => void (record && answer(model, record)),
    send() {},
  };
  return model;
}

/** What a reader typed into a card is there again, and kept whenever it changes. */
function remember(model) {
  const { name } = model.get("card");
  model.set("given", progress().predicted[name] ?? {});
  model.on("change:given", () => keep(({ predicted }) => (predicted[name] = model.get("given"))));
}

/** Open the outputs under questions once all of these are answered, or their answers were shown. */
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

/** Render a widget in its place, and take away what stood there once that has worked. */
async function play(place, told) {
  const el = document.createElement("div");
  place.append(el);
  const model = modelOf(restore(told), told.record);
  if (told.class === "PredictionCard") {
    remember(model);
    place.dataset.card = model.get("card").name;
  }
  try {
    await globalThis.flashSite.widgets[told.class].render({ model, el });
    place.classList.add("plays");
  } catch (error) {
    el.remove(); // what stood there comes back
    place.classList.add("fails");
    console.error(error);
  }
  if (place.hasAttribute("data-starts") && !matchMedia("(prefers-reduced-motion: reduce)").matches)
    place.querySelector(".flash-play")?.click();
}

export async function startWidgets() {
  const text = document.querySelector("#states")?.textContent;
  if (!text) return;
  const states = JSON.parse(text);
  /** @type {NodeListOf<HTMLElement>} */
  const places = document.querySelectorAll("[data-place]");
  for (const place of places) {
    await play(place, states[String(place.dataset.place)]);
    await new Promise((done) => setTimeout(done)); // the page answers meanwhile
  }
  uncover();
  const watch = new MutationObserver(uncover);
  for (const card of document.querySelectorAll(".card"))
    watch.observe(card, { subtree: true, childList: true, attributeFilter: ["data-outcome"] });
}
