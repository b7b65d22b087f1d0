// Plays the widgets of a page that was saved with their state and has no kernel: see tools/page.py.
// A classic script, since no browser imports a module that lies beside a page opened as a file. The text of each
// widget is in the page and is imported from there.

const ofType = (type) => `script[type="application/vnd.jupyter.widget-${type}+json"]`;

/** Put the buffers of a model back to their places in its state, as a kernel would have sent them. */
function restore({ state, buffers = [] }) {
  for (const { path, data } of buffers) {
    const place = path.slice(0, -1).reduce((value, key) => value[key], state);
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    place[path.at(-1)] = new DataView(bytes.buffer);
  }
  return state;
}

/** The model of a widget, as anywidget describes it, without a kernel: what is set stays on this page. */
function modelOf(state) {
  const heard = new Map();
  const listeners = (event) => heard.get(event) ?? heard.set(event, new Set()).get(event);
  return {
    widget_manager: undefined,
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
    save_changes() {},
    send() {},
  };
}

/** A function from the state of a widget to its module; the first of a class brings the style sheet along. */
function importer() {
  const [modules, styles] = [new Map(), new Set()];
  return ({ _esm, _css }) => {
    if (!styles.has(_css)) {
      styles.add(_css);
      document.head.append(Object.assign(document.createElement("style"), { textContent: _css ?? "" }));
    }
    if (!modules.has(_esm))
      modules.set(_esm, import(URL.createObjectURL(new Blob([_esm], { type: "text/javascript" }))));
    return modules.get(_esm);
  };
}

/** Render a widget below its picture, and hide the picture once that has worked. */
async function play(output, state, model, load) {
  const el = document.createElement("div");
  output.append(el);
  try {
    const module = await load(state);
    await module.default.render({ model, el });
    output.querySelector(".saved-picture").hidden = true;
  } catch (error) {
    el.remove(); // the picture stays
    console.error(error);
  }
}

async function playAll() {
  const saved = document.querySelector(ofType("state"));
  const { state: models } = saved ? JSON.parse(saved.textContent) : { state: {} };
  const [load, known] = [importer(), new Map()]; // two views of one widget share its model
  for (const view of document.querySelectorAll(ofType("view"))) {
    const id = JSON.parse(view.textContent).model_id;
    const { _esm } = models[id]?.state ?? {};
    if (!_esm) continue; // not an anywidget: nothing here can play it
    if (!known.has(id)) known.set(id, modelOf(restore(models[id])));
    await play(view.parentElement, models[id].state, known.get(id), load);
  }
}

playAll();
