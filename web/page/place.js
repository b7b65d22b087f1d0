// Where a reader is: the contents mark the section, and the first page offers to continue there.

import { keepPlace } from "./kept.js";

const ABOVE = 1e6; // pixels: a heading that was scrolled past still counts
const LINE = 70; // percent of the window below the line that a heading must have crossed

/** The links of the contents to the sections of this page, each with its heading. */
function sectionLinks() {
  /** @type {NodeListOf<HTMLAnchorElement>} */
  const links = document.querySelectorAll("#contents ol a");
  return [...links].map((link) => ({ link, heading: document.getElementById(decodeURIComponent(link.hash.slice(1))) }));
}

/** Scroll the contents, and not the page, so far that a link can be seen. */
function reveal(link) {
  const contents = /** @type {HTMLElement} */ (document.querySelector("#contents"));
  const [box, own] = [contents.getBoundingClientRect(), link.getBoundingClientRect()];
  if (own.top < box.top || own.bottom > box.bottom) contents.scrollTop += own.top - box.top - box.height / 3;
}

export function startPlace() {
  const page = document.querySelector("#contents [aria-current=page]");
  const sections = sectionLinks();
  if (!page) return;
  let current = -1;
  const passed = new Set();
  const mark = () => {
    const now = sections.findLastIndex(({ heading }) => passed.has(heading));
    if (now === current) return;
    sections[current]?.link.removeAttribute("aria-current");
    current = now;
    if (now < 0) return; // above the first section: a page that is only opened changes no place
    const { link, heading } = sections[now];
    link.setAttribute("aria-current", "location");
    reveal(link);
    const [name] = /** @type {HTMLAnchorElement} */ (page).pathname.split("/").slice(-1);
    const words = String(link.textContent).trim();
    keepPlace({ chapter: name.replace(/\.html$/, ""), anchor: String(heading?.id), heading: words });
  };
  const watch = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) passed[isIntersecting ? "add" : "delete"](target);
      mark();
    },
    { rootMargin: `${ABOVE}px 0px -${LINE}% 0px` },
  );
  for (const { heading } of sections) if (heading) watch.observe(heading);
}
