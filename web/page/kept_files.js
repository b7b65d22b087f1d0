// Store the files of this page in the browser, so that the page works without a network next time.

/** @param {string[]} [more] files that a worker has fetched */
export async function keepFiles(more = []) {
  if (!("serviceWorker" in navigator) || !location.protocol.startsWith("http")) return;
  try {
    await navigator.serviceWorker.register("offline.js");
    const { active } = await navigator.serviceWorker.ready;
    const loaded = performance.getEntriesByType("resource").map(({ name }) => name);
    const here = location.href.replace(/#.*/, "");
    const home = new URL("./", here).href;
    const keep = [here, ...loaded, ...more.map((url) => new URL(url, here).href)].filter((url) => url.startsWith(home));
    active?.postMessage({ keep: [...new Set(keep)] });
    document.documentElement.dataset.kept = String(keep.length); // for tests
  } catch {
    // a browser that stores nothing
  }
}
