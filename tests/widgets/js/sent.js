// What Python made for these tests: see tests/widgets/test_page_arithmetic.py, which runs them.

import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import process from "node:process";

import { float64 } from "../../../flashlib/widgets/shared/number_text.js";

/** { flash, backward, labs }: players by name, each { frames, arrays }; of a lab everything that is sent to its page. */
export const sent = JSON.parse(readFileSync(process.env.SENT_BY_PYTHON, "utf8"));

/** Bytes as received by a page: they may begin anywhere in a message. */
function bytes(text) {
  const found = Buffer.from(text, "base64");
  const all = new Uint8Array(found.length + 3);
  all.set(found, 3);
  return new DataView(all.buffer, 3);
}

for (const player of [...Object.values(sent.flash), ...Object.values(sent.backward)]) {
  player.frames.buffer = bytes(player.frames.buffer);
  for (const step of player.arrays) for (const name in step) step[name] = float64(bytes(step[name]));
}

for (const lab of Object.values(sent.labs)) for (const [name, part] of Object.entries(lab)) if (part?.bytes) lab[name] = bytes(part.bytes);
export const { labs } = sent;

/** A test for each player of a kind: run is given its frames, what was sent, and the arrays of its steps. */
export function each(test, kind, Frames, words, run) {
  for (const [name, { frames, arrays }] of Object.entries(sent[kind]))
    test(`${words}: ${name}`, () => run(new Frames(frames), frames, arrays));
}

/** All frames of a player, with the end. */
export const all = (frames) => Array.from({ length: frames.last + 1 }, (_, frame) => frames.at(frame));
