// Progress: what is solved and predicted, in the contents, in lists of chapters and on the page about the site.

/** @import { Progress } from "./kept.js" */
import { checked, follow, keep, keepPlace, place, progress } from "./kept.js";

/** The chapters, as build.py writes them. */
const chapters = () => /** @type {any[]} */ (globalThis.flashSite.chapters ?? []);

/**
 * How much of a chapter is done, and how much there is.
 * @param {{ cards: string[], exercises: string[] }} chapter
 * @param {Progress} now
 */
export function done({ cards, exercises }, { solved, predicted }) {
  const answered = cards.filter((name) => Object.keys(predicted[name] ?? {}).length).length;
  return [answered + exercises.filter((name) => name in solved).length, cards.length + exercises.length];
}

/**
 * Show in words, and by the length of a bar, how much is done.
 * @param {HTMLElement} element
 * @param {number[]} amounts as `done` returns them
 */
function tell(element, [have, all]) {
  const words = have ? `${have} of ${all}` : "";
  element.textContent = words && `${have === all ? "✓ " : ""}${words}`;
  element.setAttribute("title", words && `${words} questions and exercises`);
  if (all) element.style.setProperty("--done", `${(100 * have) / all}%`);
}

function show() {
  const now = progress();
  for (const chapter of chapters()) {
    /** @type {NodeListOf<HTMLElement>} */
    const places = document.querySelectorAll(`[data-done="${chapter.slug}"]`);
    for (const element of places) tell(element, done(chapter, now));
  }
  /** @type {NodeListOf<HTMLElement>} */
  const sections = document.querySelectorAll("#contents [data-cards]");
  for (const section of sections) {
    const [cards, exercises] = [section.dataset.cards, section.dataset.exercises].map((names) => (names ? names.split(" ") : []));
    const [have, all] = done({ cards, exercises }, now);
    section.textContent = have && have === all ? "✓" : "";
  }
  /** @type {NodeListOf<HTMLInputElement>} */
  const boxes = document.querySelectorAll("[data-solved]");
  for (const box of boxes) box.checked = String(box.dataset.solved) in now.solved;
  continueAt(now);
}

/** Where a reader who has left no place goes on: the last chapter with something done, or the one after it. */
function following(now) {
  const last = chapters().findLastIndex((chapter) => done(chapter, now)[0]);
  if (last < 0) return undefined;
  const [have, all] = done(chapters()[last], now);
  return chapters()[last + Number(have === all)]?.slug;
}

/** On the first page, a link to where the reader was. */
function continueAt(now) {
  const line = /** @type {HTMLElement | null} */ (document.querySelector("#continue"));
  if (!line) return;
  const found = place();
  const known = found && chapters().some(({ slug }) => slug === found.chapter) ? found : undefined;
  const slug = known?.chapter ?? following(now);
  line.hidden = !slug;
  if (!slug) return;
  const name = /^\d\d(?=_)/.exec(slug)?.[0] ?? document.querySelector(`main a[href="${slug}.html"]`)?.textContent?.trim() ?? slug;
  const [, number, title] = /^(?:(\d+)\. )?(.*)$/.exec(known?.heading ?? "") ?? [];
  const section = number ? `section ${number}` : title;
  const link = Object.assign(document.createElement("a"), { className: "door", href: `${slug}.html${known ? `#${known.anchor}` : ""}` });
  link.textContent = `Continue at ${[name, section].filter(Boolean).join(" · ")}`;
  const rest = Object.assign(document.createElement("span"), { className: "note", textContent: number ? title : "" });
  line.replaceChildren(link, " ", rest);
}

/** A tick box next to an exercise, on pages without Python, where nothing checks it. */
function listenToBoxes() {
  document.addEventListener("change", ({ target }) => {
    if (!(target instanceof HTMLInputElement) || !target.dataset.solved) return;
    const { checked: on, dataset } = target;
    keep(({ solved }) => {
      if (on) solved[String(dataset.solved)] ??= new Date().toISOString().slice(0, 10);
      else delete solved[String(dataset.solved)];
    });
  });
}

/** Save the progress to a file, and load one, which adds to what is solved and predicted here. */
function listenToFiles() {
  const said = document.querySelector("#progress-said");
  document.querySelector("#progress-export")?.addEventListener("click", () => {
    const file = new Blob([`${JSON.stringify(progress(), null, 1)}\n`], { type: "application/json" });
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(file), download: "progress.json" });
    link.click();
    URL.revokeObjectURL(link.href);
  });
  document.querySelector("#progress-import")?.addEventListener("change", async ({ target }) => {
    const input = /** @type {HTMLInputElement} */ (target);
    const [file] = input.files ?? [];
    if (!file || !said) return;
    try {
      const { solved, predicted } = checked(JSON.parse(await file.text()));
      keep((now) => {
        now.solved = { ...solved, ...now.solved };
        now.predicted = { ...predicted, ...now.predicted };
      });
      said.textContent = `Loaded from ${file.name}: ${Object.keys(solved).length} exercises, ${Object.keys(predicted).length} questions.`;
    } catch {
      said.textContent = `${file.name} is not a progress file: choose the progress.json of your workspace.`;
    }
    input.value = "";
  });
  document.querySelector("#progress-delete")?.addEventListener("click", () => {
    keepPlace();
    keep((now) => Object.assign(now, { solved: {}, predicted: {} }));
    if (said) said.textContent = "Deleted.";
  });
}

export function startProgress() {
  listenToBoxes();
  listenToFiles();
  follow(show);
}
