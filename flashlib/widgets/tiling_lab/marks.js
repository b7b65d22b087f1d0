// What the parts of TilingLab share: the marks of their legends.

const KB = 1024; // bytes

const mark = (kind) => h("i", { class: `flash-tiling-key flash-tiling-${kind}` });

const key = (kind, ...words) => h("span", {}, mark(kind), ...words);

const box = (x, y, width, height) => `M${x} ${y}h${width}v${height}h${-width}z`;
