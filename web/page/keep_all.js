// A button that stores the whole course on the device: what a page fetches, the service worker keeps.

import { keepFiles } from "./kept_files.js";
import { megabytes } from "./live/bar.js";

const AT_ONCE = 4; // files
const NETWORK = "The network was lost. What has arrived is kept: press again later for the rest.";

/** Resolves when the service worker answers the requests of this page. */
async function controlled() {
  const { serviceWorker } = navigator;
  await keepFiles();
  await serviceWorker.ready;
  if (!serviceWorker.controller) await new Promise((done) => serviceWorker.addEventListener("controllerchange", done, { once: true }));
}

/**
 * Fetch all files of the site, the text of each, so that it is whole when it is kept.
 * @param {[address: string, bytes: number][]} files
 * @param {AbortSignal} signal
 * @param {(bytes: number) => void} arrived
 */
async function fetchAll(files, signal, arrived) {
  const left = [...files];
  const some = async () => {
    for (let next = left.shift(); next; next = left.shift()) {
      const [address, bytes] = next;
      const answer = await fetch(address, { signal });
      if (!answer.ok) throw Error(`${address} was not found`);
      await answer.arrayBuffer();
      arrived(bytes);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, some));
}

export function startKeepAll() {
  const root = /** @type {HTMLElement | null} */ (document.querySelector("#keep-all"));
  const button = root?.querySelector("button");
  const meter = root?.querySelector("progress");
  const said = root?.querySelector("[role=status]");
  if (!root || !button || !meter || !said) return;
  if (!("serviceWorker" in navigator) || !location.protocol.startsWith("http")) return;
  root.hidden = false;
  const words = button.textContent;
  /** @type {AbortController | undefined} */
  let stop;
  button.addEventListener("click", async () => {
    if (stop) return stop.abort();
    stop = new AbortController();
    const { signal } = stop;
    button.textContent = "Stop";
    said.textContent = "";
    try {
      await controlled();
      const files = await (await fetch(String(root.dataset.files), { signal })).json();
      Object.assign(meter, { max: files.reduce((sum, [, bytes]) => sum + bytes, 0), value: 0, hidden: false });
      await fetchAll(files, signal, (bytes) => (meter.value += bytes));
      await navigator.storage?.persist?.(); // a browser that is short of room asks, or takes other sites first
      said.textContent = `All ${megabytes(meter.max)} MB are on this device. The course works without a network.`;
    } catch {
      said.textContent = signal.aborted ? "Stopped. What has arrived is kept." : NETWORK;
    }
    meter.hidden = true;
    button.textContent = words;
    stop = undefined;
  });
}
