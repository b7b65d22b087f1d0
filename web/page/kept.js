// What the browser stores about a reader. None of it is sent anywhere.

const NAME = "flashlib.progress";
const PLACE = "flashlib.place";

/**
 * The progress, in the form of the workspace's progress.json.
 * @typedef {{ solved: Record<string, string>, predicted: Record<string, Record<string, string>> }} Progress
 */

/** @type {Set<() => void>} */
const listeners = new Set();

/** @returns {Progress} */
export function progress() {
  try {
    return checked(JSON.parse(localStorage.getItem(NAME) ?? "null"));
  } catch {
    return { solved: {}, predicted: {} }; // a browser that keeps nothing, or something else was kept
  }
}

/**
 * The usable part of a file that may contain anything; throws an Error if it is not a progress file.
 * @param {any} found
 * @returns {Progress}
 */
export function checked(found) {
  const isMap = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isMap(found) || !isMap(found.solved)) throw Error("this is not a progress file");
  const predicted = Object.entries(isMap(found.predicted) ? found.predicted : {}).filter(([, given]) => isMap(given));
  const texts = (map) => Object.fromEntries(Object.entries(map).map(([name, value]) => [name, String(value)]));
  return {
    solved: texts(found.solved),
    predicted: Object.fromEntries(predicted.map(([name, given]) => [name, texts(given)])),
  };
}

/** @param {(now: Progress) => void} change */
export function keep(change) {
  const now = progress();
  change(now);
  try {
    localStorage.setItem(NAME, JSON.stringify(now));
  } catch {
    // it lasts only as long as the page
  }
  listeners.forEach((listener) => listener());
}

/** @param {() => void} listener called now and after each change, in any window */
export function follow(listener) {
  listeners.add(listener);
  addEventListener("storage", (event) => event.key === NAME && listener());
  listener();
}

/**
 * Where a reader was last: the name of a chapter's page, and a section.
 * @typedef {{ chapter: string, anchor: string, heading: string }} Place
 */

/** @returns {Place | undefined} */
export function place() {
  try {
    const { chapter, anchor, heading } = JSON.parse(localStorage.getItem(PLACE) ?? "{}");
    return [chapter, anchor, heading].every((one) => typeof one === "string") ? { chapter, anchor, heading } : undefined;
  } catch {
    return undefined; // a browser that keeps nothing, or something else was kept
  }
}

/** @param {Place} [now] none: forget it */
export function keepPlace(now) {
  try {
    if (now) localStorage.setItem(PLACE, JSON.stringify(now));
    else localStorage.removeItem(PLACE);
  } catch {
    // the contents show it as long as the page is open
  }
}
