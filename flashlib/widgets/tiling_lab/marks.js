// The marks of the legends, shared by the parts of TilingLab.

import { h } from "../shared/elements.js";

export const KB = 1024; // bytes

export const mark = (kind) => h("i", { class: `flash-tiling-key flash-tiling-${kind}` });

export const key = (kind, ...words) => h("span", {}, mark(kind), ...words);

export const box = (x, y, width, height) => `M${x} ${y}h${width}v${height}h${-width}z`;
