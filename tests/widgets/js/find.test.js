import assert from "node:assert/strict";
import { test } from "node:test";
import { found, meant, piece } from "../../../web/page/find.js";

const INDEX = [
  ["chapter", "1.html", "01 · Naive softmax", "scores to weights", "Softmax turns scores into weights. Softmax, softmax."],
  ["section", "1.html#a", "01 · Naive softmax", "What online means", "The online softmax comes in a later chapter, online softmax."],
  ["chapter", "3.html", "03 · Online softmax", "scores that come one by one", "An output is accumulated along with l."],
  ["section", "3.html#a", "03 · Online softmax", "Warps", "A warp has 32 threads; each warp waits. Warp, warp, warp, warp."],
  ["chapter", "5.html", "05 · One pass: FlashAttention by hand", "the player", "Tiles at last, and ping-pong; paged attention."],
  ["section", "5.html#a", "05 · One pass: FlashAttention by hand", "During a step", "It quantises Müller's tile."],
  ["chapter", "16.html", "16 · Rings", "keys travel round", "Ranks."],
  ["term", "0.html#w", "Glossary", "warp, warpgroup", "32 threads"],
  ["term", "0.html#g", "Glossary", "MQA, GQA", "grouped-query attention: heads share"],
  ["term", "0.html#a", "Glossary", "alpha (α)", "the factor e^(m_old − m)"],
  ["term", "0.html#m", "Glossary", "m", "running maximum of a row"],
];
const addresses = (asked) => found(INDEX, asked).map(([, address]) => address);
const first = (asked) => addresses(asked)[0];

test("a chapter's own title comes first, then a term, then a heading, then the text", () => {
  assert.equal(first("online softmax"), "3.html");
  assert.deepEqual(addresses("softmax").slice(0, 2), ["1.html", "3.html"], "in the order of the course");
  assert.deepEqual(addresses("warp"), ["0.html#w", "3.html#a"]);
  assert.equal(first("flashattention"), "5.html");
  assert.equal(first("keys travel"), "16.html", "its idea");
  assert.equal(first("grouped query"), "0.html#g");
});

test("words are found in any spelling", () => {
  for (const asked of ["ping-pong", "pingpong", "ping pong", "PINGPONG"]) assert.equal(first(asked), "5.html", asked);
  for (const asked of ["paged attention", "PagedAttention", "pagedattention"]) assert.equal(first(asked), "5.html", asked);
  for (const asked of ["quantise", "quantize", "Quantises"]) assert.equal(first(asked), "5.html#a", asked);
  for (const asked of ["flash attention", "flash-attention", "FlashAttention"]) assert.equal(first(asked), "5.html", asked);
  for (const asked of ["muller", "müller", "tiles muller"]) assert.equal(first(asked), "5.html#a", asked);
  assert.equal(first("ring"), "16.html", "not During");
  assert.equal(first("what is a warp"), "0.html#w");
  assert.equal(first("m"), "0.html#m", "a letter alone");
  assert.equal(first("α"), "0.html#a");
});

test("all words must be there, and signs are no patterns", () => {
  assert.deepEqual(addresses("warp xyzzy"), []);
  assert.deepEqual(addresses("e^(m_old"), ["0.html#a"]);
  for (const asked of ["", "  ", "(", "[", "\\", ".*", "a|b", "-", "?"]) assert.ok(Array.isArray(found(INDEX, asked)), asked);
  assert.deepEqual(addresses(".*"), []);
});

test("a typing error is corrected, one letter in a short word, two in a long one", () => {
  assert.equal(meant(INDEX, "softmx"), "softmax");
  assert.equal(meant(INDEX, "sofmtax"), "softmax", "letters that changed places");
  assert.equal(meant(INDEX, "online softtmacx"), "online softmax", "two");
  assert.equal(meant(INDEX, "warq"), "warp");
  assert.equal(meant(INDEX, "flashatention"), "flashattention");
  for (const asked of ["xyzzy", "wrqq", "wrp", "sxftmqx", "softmx xyzzy"]) assert.equal(meant(INDEX, asked), "", asked);
});

test("a piece is the text around a word, cut between words, and the word is marked", () => {
  const text = `${"far away ".repeat(20)}here ping-pong is told ${"and more ".repeat(40)}`;
  const parts = piece(text, "pingpong");
  assert.equal(parts[1], "ping-pong");
  assert.ok(parts[0].startsWith("…") && /^…(far|away) /.test(parts[0]) && parts.at(-1).endsWith("…"));
  assert.deepEqual(piece("m is a maximum", "m"), ["", "m", " is a maximum"]);
  assert.ok(piece(`${"far away ".repeat(30)}is the warp.`, "warp").at(-1).endsWith("."), "it reaches the end");
  assert.deepEqual(piece("nothing", "warp"), ["nothing"]);
});
