// Keeps the files of the pages that were visited, so that these work without a network: a service worker.

/** @type {any} what is global in a service worker */
const keeper = self;
const KEPT = "flashattention";

/** Whether a file can only change with its address, which has its hash. */
const isFixed = ({ pathname, search }) => search !== "" || /\/static\/(recorded|pictures)\//.test(pathname);

/** Keep an answer in place of what was kept of an older file. */
async function keepAnswer(request, response) {
  const cache = await caches.open(KEPT);
  await cache.delete(request, { ignoreSearch: true });
  await cache.put(request, response);
}

async function fetchAndKeep(request) {
  const response = await fetch(request);
  if (response.ok && response.status === 200) await keepAnswer(request, response.clone());
  return response;
}

async function answerFrom(request) {
  const cache = await caches.open(KEPT);
  const kept = await cache.match(request, { ignoreVary: true });
  if (kept && isFixed(new URL(request.url))) return kept;
  try {
    return await fetchAndKeep(request);
  } catch (error) {
    if (kept) return kept;
    throw error;
  }
}

keeper.addEventListener("install", () => keeper.skipWaiting());
keeper.addEventListener("activate", (event) => event.waitUntil(keeper.clients.claim()));
keeper.addEventListener("fetch", (event) => {
  const { request } = event;
  const isOurs = request.url.startsWith(new URL("./", keeper.location.href).href);
  if (request.method === "GET" && isOurs) event.respondWith(answerFrom(request));
});

// What a page had loaded before this was there.
keeper.addEventListener("message", (event) => {
  const fetchMissing = async (url) => {
    const cache = await caches.open(KEPT);
    if (!(await cache.match(url))) await fetchAndKeep(new Request(url));
  };
  event.waitUntil(Promise.all(event.data.keep.map((url) => fetchMissing(url).catch(() => undefined))));
});
