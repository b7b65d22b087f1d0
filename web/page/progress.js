// Progress: what is solved and predicted, in the contents and on the page about the site.

/** @import { Progress } from "./kept.js" */
import { checked, follow, keep, progress } from "./kept.js";

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

function show() {
  const now = progress();
  for (const chapter of chapters()) {
    const [have, all] = done(chapter, now);
    const words = have ? `${have} of ${all}` : "";
    for (const place of document.querySelectorAll(`[data-done="${chapter.slug}"]`)) {
      place.textContent = words && `${have === all ? "✓ " : ""}${words}`;
      place.setAttribute("title", words && `${words} questions and exercises`);
    }
  }
  /** @type {NodeListOf<HTMLInputElement>} */
  const boxes = document.querySelectorAll("[data-solved]");
  for (const box of boxes) box.checked = String(box.dataset.solved) in now.solved;
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
    keep((now) => Object.assign(now, { solved: {}, predicted: {} }));
    if (said) said.textContent = "Deleted.";
  });
}

export function startProgress() {
  listenToBoxes();
  listenToFiles();
  follow(show);
}
