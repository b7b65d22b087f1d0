// Keeps the files of the pages that were visited, so that these work without a network: a service worker.

/** @type {any} what is global in a service worker */
const keeper = self;
const KEPT = "flashattention";
const HOME = new URL("./", keeper.location.href).href;
const OFFLINE = `${HOME}offline.html`; // shown for a page that is not kept

/** Where a file is below the site's home, with its query. */
const below = ({ origin, pathname, search }) => `${origin}${pathname}${search}`.slice(HOME.length);

/** The hash that the address of a file names, or "": pages may be asked for with any query. */
const hashIn = (url) => /^static\/.*\?([0-9a-f]{8})$/.exec(below(url))?.[1] ?? "";

/** Whether a file can only change with its address. */
const isFixed = (url) => hashIn(url) !== "" || /^static\/(recorded|pictures)\/[^?]+$/.test(below(url));

/**
 * The address at which a file is kept. A page has several: hosts ignore its query, and most of them take "name" for
 * name.html.
 * @param {string} address
 */
function placeOf(address) {
  const url = new URL(address);
  if (isFixed(url)) return `${HOME}${below(url)}`;
  return url.origin + url.pathname.replace(/\/$/, "/index.html").replace(/\/[^/.]+$/, "$&.html");
}

/**
 * What is kept of a file, if anything is and can be read.
 * @param {string} address
 * @param {boolean} [ofAnyHash] an older page finds no other version of its scripts, once a newer one was visited
 */
async function keptAt(address, ofAnyHash = false) {
  try {
    const cache = await caches.open(KEPT);
    return await cache.match(placeOf(address), { ignoreVary: true, ignoreSearch: ofAnyHash });
  } catch {
    return undefined; // a browser that keeps nothing
  }
}

/** Whether an answer is all of a file, and nothing else in its place: it is, for example, not a part of it. */
const isWhole = ({ status, type, redirected }) => status === 200 && type === "basic" && !redirected;

/** Whether an answer has the hash that its address names: during a deploy a host may still have the file before. */
async function isAsNamed(url, answer) {
  const hash = await crypto.subtle.digest("SHA-256", await answer.arrayBuffer());
  const hex = Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.startsWith(hashIn(url));
}

/** Keep an answer in place of older ones. Storage may be full, and then these stay. */
async function keep(address, answer) {
  const url = new URL(address);
  const isTrue = !hashIn(url) || (await isAsNamed(url, answer.clone()));
  const place = isTrue ? placeOf(address) : url.origin + url.pathname; // where it is asked for again
  const cache = await caches.open(KEPT);
  await cache.put(place, answer);
  for (const old of await cache.keys(place, { ignoreSearch: true, ignoreVary: true }))
    if (old.url !== place) await cache.delete(old, { ignoreVary: true });
}

/** What there is without a network. */
async function answerOffline({ url, mode }) {
  const kept = await keptAt(url, true);
  if (kept || mode !== "navigate") return kept;
  const isDeep = new URL(url).pathname.slice(new URL(HOME).pathname.length).includes("/");
  const page = await keptAt(OFFLINE);
  return page && isDeep ? Response.redirect(OFFLINE) : page; // its links begin at the site's home
}

/** The answer comes first, and is kept after: whoever waits for it sees it come, and has it if it cannot be kept. */
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

// What a page had loaded before this was there, and the page to show for others.
keeper.addEventListener("message", (event) => {
  const fetchMissing = async (address) => {
    if (address !== OFFLINE && (await keptAt(address))) return;
    const found = await fetch(address);
    if (isWhole(found)) await keep(address, found);
  };
  event.waitUntil(Promise.all([...event.data.keep, OFFLINE].map((one) => fetchMissing(one).catch(() => undefined))));
});
