// The page that is shown without a network: it lists the pages that the browser has stored.

const KEPT = "flashattention"; // as in offline.js

/** Show the links to the stored pages. */
export async function listKeptPages() {
  const list = document.querySelector("#kept");
  if (!list || !("caches" in globalThis)) return;
  try {
    const requests = await (await caches.open(KEPT)).keys();
    const kept = new Set(requests.map(({ url }) => url));
    for (const link of list.querySelectorAll("a"))
      if (kept.has(link.href)) link.closest("li")?.removeAttribute("hidden");
  } catch {
    // a browser that stores nothing
  }
}
