// What a reader wrote into cells: stored in the browser, and saved as a notebook.

const WRITTEN = "flashlib.written";

/** @returns {Record<string, Record<string, string>>} by chapter and cell */
export function allWritten() {
  try {
    const found = JSON.parse(localStorage.getItem(WRITTEN) ?? "{}");
    return found && typeof found === "object" ? found : {};
  } catch {
    return {}; // a browser that keeps nothing, or something else was kept
  }
}

/** @param {string} chapter @param {(cells: Record<string, string>) => void} change */
export function write(chapter, change) {
  const all = allWritten();
  const cells = { ...all[chapter] };
  change(cells);
  if (Object.keys(cells).length) all[chapter] = cells;
  else delete all[chapter];
  try {
    localStorage.setItem(WRITTEN, JSON.stringify(all));
  } catch {
    // it lasts only as long as the page
  }
}

/** The notebook of a chapter with what the reader wrote, as a file. */
export async function takeAway(address, name, cells) {
  const response = await fetch(address);
  if (!response.ok) throw Error(`${address} was not found`);
  const notebook = await response.json();
  for (const cell of notebook.cells) if (cell.id in cells) cell.source = cells[cell.id];
  const file = new Blob([JSON.stringify(notebook, null, 1), "\n"], { type: "application/x-ipynb+json" });
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(file), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}
