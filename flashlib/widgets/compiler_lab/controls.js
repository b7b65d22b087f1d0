// CompilerLab's controls.

/** @import { Offered, Setting } from "./types.js" */
import { choice, toggle } from "../shared/controls.js";
import { h, note, symbol } from "../shared/elements.js";

const NAMED = { B_r: "B_r, rows of a tile", B_c: "B_c, keys of a tile", d: "d, head size" };
const DTYPES = [
  ["bfloat16", "bf16", "2 bytes an item"],
  ["float16", "fp16", "2 bytes an item"],
  ["float32", "fp32", "4 bytes an item"],
];
const LOADS = [null, [false, "pointers"], [true, "descriptors"]];

/**
 * A list to choose from: of values, or of [value, text, group]. null means the kernel's own choice. A value that is not in
 * the list is added when it is shown.
 * @param {string} name
 * @param {string} label
 * @param {any[]} offered
 * @param {(value: any) => void} change
 */
function list(name, label, offered, change) {
  /** @type {any[]} */
  const values = [];
  /** @type {Record<string, HTMLOptGroupElement>} */
  const groups = {};
  const select = h("select", {
    class: "flash-speed",
    "aria-label": NAMED[name] ?? label,
    "data-name": name,
    onchange: () => change(values[select.selectedIndex]),
  });
  /** @param {any} value @param {string} [text] @param {string} [group] */
  const add = (value, text = String(value ?? "default"), group) => {
    if (group && !groups[group]) select.append((groups[group] = h("optgroup", { label: group })));
    (group ? groups[group] : select).append(h("option", {}, text));
    values.push(value);
  };
  for (const entry of offered) {
    const [value, text, group] = Array.isArray(entry) ? entry : [entry];
    add(value, text, group);
  }
  const text = name in NAMED ? symbol(name) : note(label);
  return {
    element: h("label", { class: "flash-compiler-list" }, text, select),
    control: select,
    /** @param {any} value */
    show(value) {
      if (!values.includes(value)) add(value);
      select.selectedIndex = values.indexOf(value);
    },
  };
}

/**
 * All controls by the name of their setting, in the order of the page.
 * @param {Offered} offered
 * @param {(setting: Partial<Setting>) => void} ask
 */
export function controlsOf(offered, ask) {
  /**
   * @param {keyof Setting} name
   * @param {string} label
   * @param {any[]} [entries]
   */
  const listed = (name, label, entries = offered[name]) =>
    list(name, label, entries, (value) => ask({ [name]: value }));
  const dtype = choice("dtype", "dtype", DTYPES, (value) => ask({ dtype: value }));
  const causal = toggle("causal", (value) => ask({ causal: value }));
  return {
    kernel: listed(
      "kernel",
      "kernel",
      offered.kernel.map(([name, group]) => [name, name, group]),
    ),
    capability: listed("capability", "GPU"),
    d: listed("d", "d"),
    dtype: { ...dtype, control: dtype.element },
    causal: { ...causal, control: /** @type {HTMLInputElement} */ (causal.element.querySelector("input")) },
    B_r: listed("B_r", "B_r"),
    B_c: listed("B_c", "B_c"),
    num_warps: listed("num_warps", "warps"),
    num_stages: listed("num_stages", "stages"),
    descriptors: listed("descriptors", "loads", LOADS),
  };
}
