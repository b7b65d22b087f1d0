"""Q, K and V of one head of a real language model, for six words: small numbers to look at, without the model.

The head is head 5 of layer 16, of 270, in SmolLM2-135M-Instruct (Hugging Face, Apache-2.0). It was chosen because
its weights are easy to read; nothing is claimed about what it has learned. Q and K are as the scores take them,
after the rotary embedding. The model is causal, and its scale is 1 / sqrt(64).

`python -m tools.recorded_head` writes the file beside this one; it needs the weights, see `interop.weights`.

Source: Allal and others, SmolLM2 (2025).
"""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

FILE = Path(__file__).with_suffix(".json")


class RecordedHead(NamedTuple):
    """Q, K, V: (6, 64), float32. words: one for each row."""

    Q: np.ndarray
    K: np.ndarray
    V: np.ndarray
    words: list[str]


def load() -> RecordedHead:
    """Return the recorded head."""
    record = json.loads(FILE.read_text(encoding="utf-8"))
    Q, K, V = (np.array(record[name], np.float32) for name in "QKV")
    return RecordedHead(Q, K, V, record["words"])
