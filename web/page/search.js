// Search in all chapters: the index is a script that is loaded when it is first asked for.

const MOST = 30; // results

/** @param {string} text */
const folded = (text) => text.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "");

/**
 * The best sections for the words: all must be there; a heading counts more than the text.
 * @param {[string, string, string, string][]} index address, chapter, heading, text
 * @param {string} asked
 */
export function found(index, asked) {
  const words = folded(asked).split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const points = ([, chapter, heading, text]) => {
    const [title, head, body] = [chapter, heading, text].map(folded);
    let sum = 0;
    for (const word of words) {
      const times = body.split(word).length - 1;
      if (!times && !head.includes(word) && !title.includes(word)) return 0;
      sum += Math.min(times, 5) + (head.includes(word) ? 20 : 0) + (title.includes(word) ? 10 : 0);
    }
    return sum;
  };
  const rated = index.map((entry) => ({ entry, points: points(entry) })).filter(({ points }) => points);
  return rated.sort((a, b) => b.points - a.points).slice(0, MOST).map(({ entry }) => entry);
}

/**
 * The piece of a text around the first of the words, in parts: every second one is a word that was asked for.
 * @param {string} text
 * @param {string} asked
 */
export function piece(text, asked) {
  const words = asked.split(/\s+/).filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp(`(${words.join("|")})`, "i");
  const at = Math.max(0, text.search(pattern) - 60);
  const cut = `${at ? "…" : ""}${text.slice(at, at + 180)}${text.length > at + 180 ? "…" : ""}`;
  return cut.split(new RegExp(pattern.source, "gi"));
}

/** Load the index, once. */
function load() {
  globalThis.flashSite.loading ??= new Promise((done, fail) => {
    const script = document.createElement("script");
    script.src = String(document.querySelector("#search")?.getAttribute("data-index"));
    script.addEventListener("load", () => done(globalThis.flashSite.index));
    script.addEventListener("error", fail);
    document.head.append(script);
  });
  return globalThis.flashSite.loading;
}

/** An element with children. */
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export function startSearch() {
  const dialog = /** @type {HTMLDialogElement | null} */ (document.querySelector("#search"));
  const field = /** @type {HTMLInputElement | null} */ (dialog?.querySelector("input"));
  const list = dialog?.querySelector("ol");
  const said = dialog?.querySelector("[role=status]");
  if (!dialog || !field || !list || !said) return;
  const open = () => {
    dialog.showModal();
    field.select();
    void load();
  };
  document.querySelector("#search-open")?.addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof Element && event.target.closest("input, textarea, select, .flash-widget");
    if (event.key !== "/" || typing || dialog.open || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    open();
  });
  const show = async () => {
    const asked = field.value.trim();
    const results = found(await load(), asked);
    if (asked !== field.value.trim()) return; // more was typed meanwhile
    said.textContent = asked && (results.length ? "" : "Nothing has all of these words.");
    list.replaceChildren(
      ...results.map(([address, chapter, heading, text]) => {
        const parts = piece(text, asked).map((part, k) => (k % 2 ? make("mark", {}, part) : part));
        const link = make("a", { href: address }, `${chapter}${heading && ` · ${heading}`}`);
        return make("li", {}, link, make("p", {}, ...parts));
      }),
    );
  };
  field.addEventListener("input", () => void show());
  list.addEventListener("click", (event) => event.target instanceof HTMLAnchorElement && dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close()); // beside it
}
