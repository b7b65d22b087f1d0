// Lines of code that can be pressed: one stop for the Tab key, and arrows between them.

const ARROWS = { ArrowUp: -1, ArrowDown: 1 };

/** @param {HTMLElement[]} lines @param {(line: HTMLElement) => void} press */
export function makePressable(lines, press) {
  const shown = () => lines.filter((line) => line.isConnected);
  const stopAt = (stop) => lines.forEach((line) => (line.tabIndex = line === stop ? 0 : -1));
  const pressLine = (line) => {
    press(line);
    if (!line.isConnected) stopAt(shown()[0]); // it became an editor, which has a stop of its own
  };
  for (const line of lines) {
    line.setAttribute("role", "button");
    line.addEventListener("click", () => pressLine(line));
    line.addEventListener("keydown", (event) => {
      const to = event.key in ARROWS && shown()[shown().indexOf(line) + ARROWS[event.key]];
      if (to) {
        stopAt(to);
        to.focus();
      } else if (event.key === "Enter" || event.key === " ") pressLine(line);
      else return;
      event.preventDefault();
    });
  }
  stopAt(lines[0]);
}
