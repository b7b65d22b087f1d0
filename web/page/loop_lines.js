// Lines of code that can be pressed: one stop for the Tab key, and arrows between them.

const ARROWS = { ArrowUp: -1, ArrowDown: 1 };

/**
 * Return a function after which they are text again.
 * @param {HTMLElement[]} lines @param {(line: HTMLElement) => void} press
 */
export function makePressable(lines, press) {
  const stopAt = (stop) => lines.forEach((line) => (line.tabIndex = line === stop ? 0 : -1));
  const stop = new AbortController();
  const { signal } = stop;
  for (const line of lines) {
    line.setAttribute("role", "button");
    line.addEventListener("click", () => press(line), { signal });
    const key = (event) => {
      const to = event.key in ARROWS && lines[lines.indexOf(line) + ARROWS[event.key]];
      if (to) {
        stopAt(to);
        to.focus();
      } else if (event.key === "Enter" || event.key === " ") press(line);
      else return;
      event.preventDefault();
    };
    line.addEventListener("keydown", key, { signal });
  }
  stopAt(lines[0]);
  return () => {
    stop.abort();
    for (const line of lines) for (const name of ["role", "tabindex"]) line.removeAttribute(name);
  };
}
