// The theme, before the page is painted: what the reader chose, else what the system has.

const chosen = (() => {
  try {
    return localStorage.getItem("flashlib.theme");
  } catch {
    return null; // a browser that keeps nothing
  }
})();
document.documentElement.classList.add("js");
if (chosen) document.documentElement.dataset.theme = chosen;
globalThis.flashSite = { widgets: {}, recorded: {} }; // what the scripts of this page hand to each other
