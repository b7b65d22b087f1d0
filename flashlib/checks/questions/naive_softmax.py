"""The questions of chapter 01."""

import math

from flashlib.checks.prediction import Question

QUESTIONS = [
    Question(
        "first_overflow",
        lambda: {"fp16": math.floor(math.log(65504)) + 1, "fp32": 89, "fp64": 710},
        "the exponential passes the largest number at its logarithm: 11.09, 88.72 and 709.78.",
    ),
]
