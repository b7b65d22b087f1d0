// Pictures of numbers: a pixel each, in a format that any reader of images knows.

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import test from "node:test";

import { pictureOf } from "../../../flashlib/widgets/shared/picture.js";
import { drawn } from "./helpers.js";

/** The pixels of a picture, by its own headers. */
function read(address) {
  const [, text] = address.match(/^url\(data:image\/bmp;base64,([A-Za-z0-9+/]*=*)\)$/);
  const bytes = Buffer.from(text, "base64");
  assert.equal(bytes.toString("latin1", 0, 2), "BM");
  assert.equal(bytes.readUInt32LE(2), bytes.length);
  const [start, width, height] = [bytes.readUInt32LE(10), bytes.readInt32LE(18), -bytes.readInt32LE(22)];
  assert.equal(bytes.length, start + 4 * width * height);
  const pixels = Array.from({ length: width * height }, (_, k) => bytes.readUInt32LE(start + 4 * k));
  return { width, height, pixels };
}

test("a picture has its pixels in their order, small or large", () => {
  for (const [width, height] of [[1, 1], [3, 7], [64, 1], [127, 61]]) {
    const pixels = drawn(width * height, (draw) => 1 + Math.floor(draw() * (2 ** 32 - 1)));
    assert.deepEqual(read(pictureOf(Uint32Array.from(pixels), width, height)), { width, height, pixels });
  }
});

test("a picture without a pixel is none", () => {
  assert.equal(pictureOf(new Uint32Array(6), 2, 3), "none");
});
