// Set the theme before the page is painted: the reader's choice, or else the system's.

const chosen = (() => {
  try {
    return localStorage.getItem("flashlib.theme");
  } catch {
    return null; // a browser that keeps nothing
  }
})();
document.documentElement.classList.add("js");
if (chosen) document.documentElement.dataset.theme = chosen;
globalThis.flashSite = { widgets: {}, recorded: {} }; // data that the scripts of this page share
