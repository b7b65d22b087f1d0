// The page for when there is no network: it lists the pages that the browser has kept.

const KEPT = "flashattention"; // as in offline.js

/** Show the links to those pages that are kept. */
export async function listKeptPages() {
  const list = document.querySelector("#kept");
  if (!list || !("caches" in globalThis)) return;
  try {
    const requests = await (await caches.open(KEPT)).keys();
    const kept = new Set(requests.map(({ url }) => url));
    for (const link of list.querySelectorAll("a"))
      if (kept.has(link.href)) link.closest("li")?.removeAttribute("hidden");
  } catch {
    // a browser that keeps nothing
  }
}
