// The colours of numbers, and the theme.

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** @typedef {{ css: (x: number, peak: number) => string, pixel: (x: number, peak: number) => number }} Colours */

/**
 * The diverging scale of the theme: from x and its largest absolute value to a colour, as `css` or as the `pixel` of an
 * image. Absolute values are raised to the power 0.7, so that small ones can be distinguished.
 * @param {HTMLElement} root
 * @returns {Colours}
 */
export function colourScale(root) {
  const style = getComputedStyle(root);
  const [negative, zero, positive, masked] = ["negative", "zero", "positive", "masked"].map((name) =>
    rgb(style.getPropertyValue(`--flash-${name}`).trim()),
  );
  const colours = Array.from({ length: 257 }, (_, k) => {
    const t = (k - 128) / 128;
    const end = t < 0 ? negative : positive;
    return zero.map((z, c) => Math.round(z + Math.abs(t) ** 0.7 * (end[c] - z)));
  });
  colours.push(masked);
  const css = colours.map((colour) => `rgb(${colour.join(",")})`);
  const pixels = colours.map(([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
  const index = (x, peak) =>
    Number.isFinite(x) ? 128 + Math.round(128 * Math.max(-1, Math.min(1, x / (peak || 1)))) : 257;
  return { css: (x, peak) => css[index(x, peak)], pixel: (x, peak) => pixels[index(x, peak)] };
}

/**
 * Give a legend's scale its colours: each of its parts has a number from -1 to 1.
 * @param {HTMLElement} root
 * @param {Colours} colour
 */
export function paintScale(root, colour) {
  /** @type {NodeListOf<HTMLElement>} */
  const parts = root.querySelectorAll(".flash-scale b");
  for (const part of parts) part.style.backgroundColor = colour.css(Number(part.dataset.t), 1);
}

/**
 * Mark the root as dark or light, now if it is on the page, else once it is, and whenever the theme changes; `changed` is
 * called after each change. Returns a function that stops this.
 * @param {HTMLElement} root
 * @param {() => void} changed
 */
export function watchTheme(root, changed) {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const canvas = /** @type {CanvasRenderingContext2D} */ (context);
  /** @type {string | undefined} */
  let back;
  /** @type {boolean | undefined} */
  let dark;
  const look = () => {
    if (!root.isConnected) return; // it has no colours yet
    const { backgroundColor } = getComputedStyle(root);
    if (backgroundColor === back) return;
    canvas.fillStyle = back = backgroundColor;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
    const isDark = 0.2126 * r + 0.7152 * g + 0.0722 * b < 128;
    if (isDark === dark) return;
    dark = isDark;
    root.classList.toggle("flash-dark", dark);
    changed();
  };
  const observer = new MutationObserver(() => setTimeout(look, 50)); // the style sheet follows the attribute
  observer.observe(document.body, { attributes: true });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", look);
  const shown = new ResizeObserver(look); // fires when the root is added to the page
  shown.observe(root);
  look();
  return () => {
    observer.disconnect();
    shown.disconnect();
    system.removeEventListener("change", look);
  };
}
