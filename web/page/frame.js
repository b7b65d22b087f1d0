// The frame of a page: the theme, the contents and folded parts.

function startTheme() {
  const button = document.querySelector("#theme");
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const show = () => {
    button?.setAttribute("aria-label", isDark() ? "Light theme" : "Dark theme");
    button?.setAttribute("title", isDark() ? "Light theme" : "Dark theme");
    document.body.dataset.jpThemeLight = String(!isDark()); // the widgets look when this changes
  };
  button?.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("flashlib.theme", root.dataset.theme);
    } catch {
      // it lasts only as long as the page
    }
    show();
  });
  system.addEventListener("change", show);
  show();
}

/** In a narrow window, open and close the contents. */
function startContents() {
  const button = document.querySelector("#menu");
  const contents = document.querySelector("#contents");
  if (!button || !contents) return;
  const set = (open) => {
    document.body.classList.toggle("contents-open", open);
    button.setAttribute("aria-expanded", String(open));
  };
  button.addEventListener("click", () => {
    set(button.getAttribute("aria-expanded") !== "true");
    if (button.getAttribute("aria-expanded") === "true") /** @type {HTMLElement | null} */ (contents.querySelector("[aria-current]"))?.focus();
  });
  contents.addEventListener("click", ({ target }) => target instanceof Element && target.closest("a") && set(false));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !document.body.classList.contains("contents-open")) return;
    set(false);
    /** @type {HTMLElement} */ (button).focus();
  });
  const current = contents.querySelector("[aria-current=page]");
  if (current) contents.scrollTop = /** @type {HTMLElement} */ (current).offsetTop - contents.clientHeight / 3;
}

/** The place that an address names after its #; text that is not encoded, such as "100%", is taken literally. */
function placeNamed(text) {
  try {
    return document.getElementById(decodeURIComponent(text));
  } catch {
    return document.getElementById(text);
  }
}

/** Go to the place that the address names, and unfold it. */
export function goThere() {
  const target = placeNamed(location.hash.slice(1));
  if (!target) return;
  for (let fold = target.closest("details"); fold; fold = fold.parentElement?.closest("details") ?? null) fold.open = true;
  target.scrollIntoView();
}

export function startFrame() {
  startTheme();
  startContents();
  addEventListener("hashchange", goThere);
}
