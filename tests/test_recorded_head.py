"""The recorded head is what its tool writes, small, and can be looked at."""

import hashlib
import json

import numpy as np

from flashlib import naive, recorded_head
from flashlib.recorded_head import FILE
from tools.recorded_head import TEXT, as_text

# Of the file; tests/interop/test_weights.py compares it with the model.
SHA256 = "001b1ad9551914ce0e64a50f25fdd3662661601a242886ad532f881b774d5078"


def test_the_file_is_what_the_tool_writes_and_small():
    content = FILE.read_bytes()
    assert hashlib.sha256(content).hexdigest() == SHA256
    assert len(content) < 20_000
    record = json.loads(content)
    assert as_text(record | {name: np.array(record[name], np.float32) for name in "QKV"}) == content.decode()
    assert record["licence"] == "Apache-2.0" and record["model"] in recorded_head.__doc__
    assert f"head {record['head']} of layer {record['layer']}" in recorded_head.__doc__.replace("\n", " ")


def test_it_is_a_head_of_six_words():
    Q, K, V, words = recorded_head.load()
    assert " ".join(words) == TEXT and len(set(words)) == 6
    for X in (Q, K, V):
        assert X.shape == (6, 64) and X.dtype == np.float32 and np.isfinite(X).all()


def test_its_weights_are_easy_to_read():
    """More than half of the weight of each word goes to one word."""
    Q, K, V, words = recorded_head.load()
    lse = naive.attention(Q, K, V, causal=True).lse
    P = np.exp(np.tril(Q @ K.T / 8) - lse[:, None]) * np.tri(6)
    most = {words[r]: words[P[r].argmax()] for r in range(6) if P[r].max() > 0.5}
    assert most == {"The": "The", "cat": "The", "slept": "cat", "because": "slept", "it": "cat", "was": "cat"}
