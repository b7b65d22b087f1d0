"""Record Q, K and V of one head for six words, from the weights that `make models` fetches.

    python -m tools.recorded_head

writes flashlib/recorded_head.json anew.
"""

import json

import numpy as np

from flashlib.interop import weights
from flashlib.recorded_head import FILE

TEXT = "The cat slept because it was"  # each word is one token
LAYER, HEAD = 16, 5
DIGITS = 4  # after the point: the last ones of a float32 differ from machine to machine


def record(model, tokenizer):
    """Return what is recorded of a model: texts, and Q, K and V of the head as arrays, (6, 64)."""
    import torch

    from flashlib import torch_ref
    from flashlib.interop.transformers import register

    layers = []

    def keeping(Q, K, V, *, causal=False, scale=None):
        layers.append((Q[0], K[0], V[0]))  # (heads, N, d) each
        return torch_ref.attention(Q, K, V, causal=causal, scale=scale)

    model.set_attn_implementation(register("recording", keeping))
    ids = tokenizer(TEXT, return_tensors="pt").input_ids
    with torch.no_grad():
        model(ids)
    Q, K, V = layers[LAYER]
    group = len(Q) // len(K)  # query heads that share one of K and V
    return {
        "words": [tokenizer.decode(token).strip() for token in ids[0]],
        "model": weights.NAME,
        "licence": weights.LICENCE,
        "source": f"the weights in {weights.PACKAGE} ({weights.FILE}), in float32",
        "layer": LAYER,
        "head": HEAD,
        "Q": Q[HEAD].numpy(),
        "K": K[HEAD // group].numpy(),
        "V": V[HEAD // group].numpy(),
    }


def as_text(recorded):
    """Return a record as JSON, a line for each of its texts and for each row of an array."""

    def value(x):
        if not isinstance(x, np.ndarray):
            return json.dumps(x)
        rows = (", ".join(map(str, row)) for row in x.round(DIGITS))
        return "[\n" + ",\n".join(f"[{row}]" for row in rows) + "\n]"

    return "{\n" + ",\n".join(f"{json.dumps(name)}: {value(x)}" for name, x in recorded.items()) + "\n}\n"


def main():
    FILE.write_text(as_text(record(*weights.load())), encoding="utf-8")
    print(f"{FILE.name}: {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
