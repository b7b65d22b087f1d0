// The worker that runs Python: it fetches the parts, reports its progress, and passes questions to the kernel.

/** @type {any} what is global in a worker */
const scope = self;
const ARCHIVES = ["course.zip", "kernels.zip"];
const SITE = "/lib/python3.12/site-packages";

/** @type {any} the kernel, once it runs */
let page;

/** Fetch all parts at once; return a map from name to bytes. */
async function fetched(parts) {
  const packed = new Map(parts.map(({ name }) => [name, 0]));
  const tell = () => postMessage({ fetched: [...packed.values()].reduce((sum, part) => sum + part, 0) });
  const one = async ({ name, url, size, packed: all }) => {
    const response = await fetch(url);
    if (!response.ok || !response.body) throw Error(`${name} was not found (${response.status})`);
    const bytes = new Uint8Array(size);
    let at = 0;
    for (const reader = response.body.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      if (at + value.length > size) throw Error(`${name} has changed: reload the page`);
      bytes.set(value, at);
      at += value.length;
      packed.set(name, Math.round((all * at) / size)); // hosts compress text, and the reader decompresses it
      tell();
    }
    if (at !== size) throw Error(`only a part of ${name} arrived: ${at} of ${size} bytes`);
    return [name, bytes];
  };
  return new Map(await Promise.all(parts.map(one)));
}

/** Run a script whose text was fetched. */
function runScript(bytes) {
  const url = URL.createObjectURL(new Blob([bytes], { type: "text/javascript" }));
  scope.importScripts(url);
  URL.revokeObjectURL(url);
}

async function begin({ parts, cells }) {
  const files = await fetched(parts);
  postMessage({ kind: "starting" });
  const ask = self.fetch.bind(self);
  self.fetch = async (url, options) => {
    const name = String(url instanceof Request ? url.url : url).split("/").at(-1);
    const bytes = files.get(name);
    if (!bytes) return ask(url, options);
    const type = String(name).endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
    return new Response(bytes, { headers: { "Content-Type": type } });
  };
  runScript(files.get("pyodide.js"));
  runScript(files.get("pyodide.asm.js"));
  const python = await scope.loadPyodide({ indexURL: "fetched/", packages: ["numpy"] });
  for (const [name, bytes] of files) if (ARCHIVES.includes(name)) python.unpackArchive(bytes, "zip", { extractDir: SITE });
  self.fetch = ask;
  python.FS.mkdirTree(`${SITE}/notebooks/data`);
  for (const [name, bytes] of files) if (name.startsWith("data/")) python.FS.writeFile(`${SITE}/notebooks/${name}`, bytes);
  files.clear();
  python.FS.chdir(`${SITE}/notebooks`);
  const tell = (event, buffers) => postMessage({ event, buffers: taken(buffers) });
  const watch = (kind, value) => postMessage({ watched: [kind, value] });
  page = python.pyimport("web.live.inside.kernel").begin(cells, tell, watch);
  postMessage({ kind: "ready" });
}

/** Convert a Python list of bytes to arrays. */
function taken(proxy) {
  const buffers = proxy.toJs();
  proxy.destroy();
  return buffers;
}

function answer({ reply, question }) {
  const told = page.ask(question);
  const [text, buffers] = told.toJs();
  told.destroy();
  postMessage({ reply, answer: text, buffers }, buffers.map((bytes) => bytes.buffer));
}

let queue = Promise.resolve();
onmessage = ({ data }) => {
  queue = queue.then(() => ("parts" in data ? begin(data) : answer(data)));
  queue.catch((error) => postMessage({ failed: String(error?.message ?? error) }));
};
