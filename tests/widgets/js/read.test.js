// What a learner types, as a value.

import assert from "node:assert/strict";
import test from "node:test";

import { READ } from "../../../flashlib/widgets/prediction_card/read.js";

const field = { length: 2, choices: ["left", "right"] };
const is = (kind, value, ...texts) => {
  for (const text of texts) assert.deepEqual(READ[kind](text, field), value, text);
};

test("a number is typed in many ways", () => {
  is("number", -0.5, "-0.5", "−.5", "–5e-1", "-1/2");
  is("number", 65504, "65504", "65 504", "65_504", "6.5504E4", "+65504.");
  is("number", 1 / 1024, "1/1024", " 1 / 1024 ");
  is("number", Infinity, "inf", "∞", "+Infinity", "INF");
  is("number", -Infinity, "-inf", "−∞");
  is("number", NaN, "nan", "NaN");
  is("number", undefined, "", "-18 keys", "1/2/3", "1,5", "e5", "--1", "0x10", "1/", "infinite");
});

test("a tuple is written as one likes, and has its length", () => {
  is("tuple", [5, 7], "5, 7", "(5, 7)", "[5,7]", "5 , 7,");
  is("tuple", undefined, "5", "5, 7, 9", "5; 7", "(5, x)", "");
});

test("a set has no order, and its items may be tuples", () => {
  is("set", ["-800", "800"], "800, -800", "{-800, 800}", "800,800,-800");
  is("set", ["1,0", "2,0"], "(2, 0), (1, 0)", "{(1,0),(2,0)}");
  is("set", [], "", "{}");
  is("set", undefined, "a, b", "(1, 0) x");
});

test("a bool and a choice are of what there is", () => {
  is("bool", true, "True", "true");
  is("bool", false, "False");
  is("bool", undefined, "yes", "");
  is("choice", "left", "left");
  is("choice", undefined, "Left", "up");
});
