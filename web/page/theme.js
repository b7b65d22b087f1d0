// Before the page is painted: its theme, the reader's choice or else the system's, and room for what scripts will show.

const stored = (name) => {
  try {
    return localStorage.getItem(name);
  } catch {
    return null; // a browser that keeps nothing
  }
};
const { classList, dataset } = document.documentElement;
classList.add("js");
classList.toggle("live", location.protocol.startsWith("http")); // a page opened as a file cannot start a worker
classList.toggle("continues", Boolean(stored("flashlib.place") ?? stored("flashlib.progress")));
const chosen = stored("flashlib.theme");
if (chosen) dataset.theme = chosen;
globalThis.flashSite = { widgets: {}, recorded: {} }; // data that the scripts of this page share
