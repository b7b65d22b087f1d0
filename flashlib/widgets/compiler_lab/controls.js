// CompilerLab's controls.

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
 * A list to choose from: of values, or of [value, text, group]. null stands for what the kernel chooses. A value
 * that is not offered is added when it is shown.
 */
function list(name, label, offered, change) {
  const [values, groups] = [[], {}];
  const select = h("select", {
    class: "flash-speed",
    "aria-label": NAMED[name] ?? label,
    "data-name": name,
    onchange: () => change(values[select.selectedIndex]),
  });
  const add = (value, text = String(value ?? "default"), group = null) => {
    if (group && !groups[group]) select.append((groups[group] = h("optgroup", { label: group })));
    (groups[group] ?? select).append(h("option", {}, text));
    values.push(value);
  };
  for (const entry of offered) add(...(Array.isArray(entry) ? entry : [entry]));
  const text = name in NAMED ? symbol(name) : note(label);
  return {
    element: h("label", { class: "flash-compiler-list" }, text, select),
    control: select,
    show(value) {
      if (!values.includes(value)) add(value);
      select.selectedIndex = values.indexOf(value);
    },
  };
}

/** All controls by the name of their setting, in the order of the page. */
export function controlsOf(offered, ask) {
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
    causal: { ...causal, control: causal.element.querySelector("input") },
    B_r: listed("B_r", "B_r"),
    B_c: listed("B_c", "B_c"),
    num_warps: listed("num_warps", "warps"),
    num_stages: listed("num_stages", "stages"),
    descriptors: listed("descriptors", "loads", LOADS),
  };
}
