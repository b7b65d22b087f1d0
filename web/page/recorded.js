// The recorded settings of a widget: a script that is loaded when a reader first asks for a different setting.

/**
 * Return the bytes of a part of a record.
 * @param {string} packed base64 of a zlib stream
 */
async function unpacked(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

/** @type {Map<string, Promise<Map<string, any>>>} */
const loaded = new Map();

/**
 * Load a record, once; return a Map from a setting, as JSON, to its frames.
 * @param {string} name
 */
function loadRecord(name) {
  const script = Object.assign(document.createElement("script"), { src: `static/recorded/${name}.js` });
  const ready = new Promise((done, fail) => {
    script.addEventListener("load", done);
    script.addEventListener("error", () => fail(Error(`${script.src} could not be loaded`)));
  });
  document.head.append(script);
  return ready.then(async () => {
    const { words, numbers, places } = globalThis.flashSite.recorded[name];
    const [text, values, at] = await Promise.all([words, numbers, places].map(unpacked));
    const [different, indices] = [new Float64Array(values), new Uint16Array(at)];
    let start = 0;
    const settings = JSON.parse(new TextDecoder().decode(text)).map(([key, frames, count]) => {
      const own = Float64Array.from(indices.subarray(start, (start += count)), (index) => different[index]);
      return [key, { ...frames, buffer: new DataView(own.buffer) }];
    });
    return new Map(settings);
  });
}

const keyOf = (model, settings) => JSON.stringify(settings.map((setting) => model.get(setting)));

/** @param {any} model @param {{ settings: string[], keys: string[][] }} record whether the record may have this setting */
export function isRecorded(model, { settings }) {
  const others = ["asked", ...settings];
  return [...model.touched].every((name) => others.includes(name));
}

/**
 * Return the frames with which Python would answer.
 * @param {any} model
 * @param {{ name: string, settings: string[] }} record
 */
export async function recordedFrames(model, { name, settings }) {
  const { controls } = model.get("frames");
  try {
    if (!loaded.has(name)) loaded.set(name, loadRecord(name));
    const key = keyOf(model, settings);
    const frames = (await loaded.get(name))?.get(key);
    if (!frames) throw Error(`${key} was not recorded`);
    return { ...frames, controls };
  } catch (error) {
    loaded.delete(name);
    throw error;
  }
}
