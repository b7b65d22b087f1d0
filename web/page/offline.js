// A service worker that stores the files of visited pages, so that these work without a network.

/** @type {any} what is global in a service worker */
const keeper = self;
const KEPT = "flashattention";
const HOME = new URL("./", keeper.location.href).href;
const OFFLINE = `${HOME}offline.html`; // shown for a page that is not kept

/** The path of a file below the site's home, with its query. */
const below = ({ origin, pathname, search }) => `${origin}${pathname}${search}`.slice(HOME.length);

/** The hash in the address of a file, or "", since pages may be requested with any query. */
const hashIn = (url) => /^static\/.*\?([0-9a-f]{8})$/.exec(below(url))?.[1] ?? "";

/** Whether a file can only change with its address. */
const isFixed = (url) => hashIn(url) !== "" || /^static\/(recorded|pictures)\/[^?]+$/.test(below(url));

/**
 * The address under which a file is stored. A page has several: hosts ignore its query, and most of them serve
 * name.html for "name".
 * @param {string} address
 */
function placeOf(address) {
  const url = new URL(address);
  if (isFixed(url)) return `${HOME}${below(url)}`;
  return url.origin + url.pathname.replace(/\/$/, "/index.html").replace(/\/[^/.]+$/, "$&.html");
}

/**
 * The stored copy of a file, if there is one and it can be read.
 * @param {string} address
 * @param {boolean} [ofAnyHash] take any version: once a newer page was visited, an older one does not find its scripts
 */
async function keptAt(address, ofAnyHash = false) {
  try {
    const cache = await caches.open(KEPT);
    return await cache.match(placeOf(address), { ignoreVary: true, ignoreSearch: ofAnyHash });
  } catch {
    return undefined; // a browser that keeps nothing
  }
}

/** Whether a response is the whole file: not a part of it, nor anything else in its place. */
const isWhole = ({ status, type, redirected }) => status === 200 && type === "basic" && !redirected;

/** Whether a response has the hash in its address: during a deploy a host may still have the older file. */
async function isAsNamed(url, answer) {
  const hash = await crypto.subtle.digest("SHA-256", await answer.arrayBuffer());
  const hex = Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.startsWith(hashIn(url));
}

/** Store a response, replacing older ones. If storage is full, these stay. */
async function keep(address, answer) {
  const url = new URL(address);
  const isTrue = !hashIn(url) || (await isAsNamed(url, answer.clone()));
  const place = isTrue ? placeOf(address) : url.origin + url.pathname; // where it will be requested again
  const cache = await caches.open(KEPT);
  await cache.put(place, answer);
  for (const old of await cache.keys(place, { ignoreSearch: true, ignoreVary: true }))
    if (old.url !== place) await cache.delete(old, { ignoreVary: true });
}

/** The response without a network. */
async function answerOffline({ url, mode }) {
  const kept = await keptAt(url, true);
  if (kept || mode !== "navigate") return kept;
  const isDeep = new URL(url).pathname.slice(new URL(HOME).pathname.length).includes("/");
  const page = await keptAt(OFFLINE);
  return page && isDeep ? Response.redirect(OFFLINE) : page; // its links begin at the site's home
}

/** Respond first and store afterwards, so that nobody waits, and a response that cannot be stored still arrives. */
async function respond(event) {
  const { request } = event;
  const kept = isFixed(new URL(request.url)) && (await keptAt(request.url));
  if (kept) return kept;
  try {
    const found = await fetch(request, { cache: "no-cache" }); // hosts let browsers show old pages for some minutes
    if (isWhole(found)) event.waitUntil(keep(request.url, found.clone()).catch(() => undefined));
    return found;
  } catch (error) {
    const found = await answerOffline(request);
    if (!found) throw error;
    return found;
  }
}

keeper.addEventListener("install", () => keeper.skipWaiting());
keeper.addEventListener("activate", (event) => event.waitUntil(keeper.clients.claim()));
keeper.addEventListener("fetch", (event) => {
  const { url, method, headers } = event.request;
  if (method === "GET" && url.startsWith(HOME) && !headers.has("range")) event.respondWith(respond(event));
});

// The files that a page had loaded before this worker started, and the page to show in place of missing ones.
keeper.addEventListener("message", (event) => {
  const fetchMissing = async (address) => {
    if (address !== OFFLINE && (await keptAt(address))) return;
    const found = await fetch(address);
    if (isWhole(found)) await keep(address, found);
  };
  event.waitUntil(Promise.all([...event.data.keep, OFFLINE].map((one) => fetchMissing(one).catch(() => undefined))));
});
