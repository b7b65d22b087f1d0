// What a search finds: chapters, terms of the glossary and sections, the best first.

/**
 * An entry of the index. The heading of a chapter is its idea; the text of a term is its meaning.
 * @typedef {[kind: "chapter" | "term" | "section", address: string, chapter: string, heading: string, text: string]} Entry
 */

const MOST = 30; // results
const TITLED = { chapter: 400, term: 300, section: 200 }; // points of an entry whose title has all the words
const EXACT = { chapter: 100, term: 50, section: 50 }; // on top, if it has no others
const ABOUT = { chapter: 150, term: 120, section: 0 }; // if its second line does: an idea, a meaning
const SMALL = new Set("a an and are as by for from how in is it of on or the to what when where why with".split(" "));
const APART = "[^\\p{L}\\p{N}]*"; // between two words
const START = "(?<![\\p{L}\\p{N}_])";

/** Matches a word at its beginning, and a letter only if it is a word. */
const begins = (word) => `${START}${loose(word)}${word.length > 1 ? "" : "(?![\\p{L}\\p{N}_])"}`;

/** Lower case, without accents, and with a hyphen before a capital inside a word: "flash-attention". */
const normal = (text) =>
  text
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .replace(/(\p{Ll})(?=\p{Lu}\p{Ll})/gu, "$1-")
    .toLowerCase();

/** @param {string} asked */
function wordsOf(asked) {
  const words = normal(asked).replaceAll(/[-‐]/g, "").split(/[\s,;]+/).filter(Boolean);
  const large = words.filter((word) => !SMALL.has(word));
  return large.length ? large : words;
}

/** A pattern for all spellings of a word: ping-pong, pingpong, ping pong; -ise, -ize; one tile, two tiles. */
function loose(word) {
  const letters = [...word].map((one) => ("sz".includes(one) ? "[sz]" : one.replace(/[.*+?^${}()|[\]\\/]/, "\\$&")));
  const form = letters.join(letters.length > 4 ? "[-‐ ]?" : "[-‐]?");
  return letters.length > 3 && word.endsWith("s") ? `${form}?` : form;
}

/** The patterns of a search. */
function patterns(words) {
  const phrase = words.map(loose).join(APART);
  return {
    forms: words.map((word) => ({ inside: new RegExp(loose(word), "u"), start: new RegExp(begins(word), "gu") })),
    phrase: new RegExp(START + phrase, "u"),
    exact: new RegExp(`^${APART}${phrase}s?${APART}$`, "u"),
  };
}

/** The score of an entry, 0 if it lacks a word. */
function points({ kind, title, second, all }, { forms, phrase, exact }) {
  if (!forms.every(({ inside }) => inside.test(all))) return 0;
  const has = (text) => forms.every(({ start }) => text.search(start) >= 0);
  const titled = has(title) && TITLED[kind] + (title.split(/[,()]/).some((name) => exact.test(name)) ? EXACT[kind] : 0);
  if (titled && kind === "chapter") return titled; // several stand in the order of the course
  let sum = titled || (has(second) ? ABOUT[kind] : 0);
  sum += phrase.test(all) ? 15 : 0;
  for (const { start } of forms) {
    sum += title.search(start) >= 0 ? 20 : 0;
    sum += 0.1 + Math.min(all.match(start)?.length ?? 0, 5);
  }
  return sum;
}

/** A function of the index that computes once. */
function kept(compute) {
  const known = new WeakMap();
  return (index) => {
    if (!known.has(index)) known.set(index, compute(index));
    return known.get(index);
  };
}

/** The index, with its texts normalised for comparison. */
const prepare = kept((index) =>
  index.map((entry) => {
    const [kind, , chapter, heading, text] = entry;
    const [title, second] = kind === "chapter" ? [chapter.replace(/^\d+ · /, ""), heading] : [heading, text];
    return { entry, kind, title: normal(title), second: normal(second), all: normal([chapter, heading, text].join("\n")) };
  }),
);

/**
 * The best entries that contain all the words.
 * @param {Entry[]} index
 * @param {string} asked
 * @returns {Entry[]}
 */
export function found(index, asked) {
  const words = wordsOf(asked);
  if (!words.length) return [];
  const search = patterns(words);
  const rated = prepare(index).map((one) => ({ entry: one.entry, points: points(one, search) }));
  const best = rated.filter((one) => one.points).sort((a, b) => b.points - a.points);
  return best.slice(0, MOST).map(({ entry }) => entry);
}

/** The number of wrong letters: missing, added or replaced, or two exchanged. */
function slips(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, k) => k);
  let before = row;
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) next[j] = Math.min(next[j], before[j - 2] + 1);
    }
    [before, row] = [row, next];
  }
  return row[b.length];
}

/** Each word of the index, and how often it occurs. */
const vocabulary = kept((index) => {
  const times = new Map();
  for (const { all } of prepare(index)) {
    for (const word of all.match(/\p{L}[\p{L}-]{2,}/gu) ?? []) {
      for (const one of new Set([word.replaceAll("-", ""), ...word.split("-")])) times.set(one, (times.get(one) ?? 0) + 1);
    }
  }
  return times;
});

/**
 * What the reader probably meant if a word occurs nowhere: the search with the nearest word instead, or "".
 * @param {Entry[]} index
 * @param {string} asked
 */
export function meant(index, asked) {
  const known = vocabulary(index);
  const words = wordsOf(asked).map((word) => {
    const form = new RegExp(loose(word), "u");
    if (prepare(index).some(({ all }) => form.test(all))) return word;
    const most = word.length < 4 ? 0 : word.length < 8 ? 1 : 2;
    let [best, least, often] = ["", most + 1, 0];
    for (const [other, times] of known) {
      if (Math.abs(other.length - word.length) > most) continue;
      const wrong = slips(word, other);
      if (wrong < least || (wrong === least && best && times > often)) [best, least, often] = [other, wrong, times];
    }
    return best;
  });
  return words.every(Boolean) ? words.join(" ") : "";
}

/**
 * The part of a text around the first match, in pieces: every second one is a word of the search.
 * @param {string} text
 * @param {string} asked
 */
export function piece(text, asked) {
  const words = wordsOf(asked);
  const starts = `(${words.map(begins).join("|")})`;
  const pattern = new RegExp(starts, "iu").test(text) ? starts : `(${words.map(loose).join("|")})`;
  const at = Math.max(0, text.search(new RegExp(pattern, "iu")) - 60);
  const from = at && text.indexOf(" ", at) + 1; // a whole word
  const cut = `${from ? "…" : ""}${text.slice(from, from + 180)}${text.length > from + 180 ? "…" : ""}`;
  return cut.split(new RegExp(pattern, "giu"));
}
