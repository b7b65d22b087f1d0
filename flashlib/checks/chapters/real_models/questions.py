"""The questions of this chapter."""

import numpy as np

from flashlib import masks
from flashlib.checks.engine.prediction import Question

LAYERS = 30  # of SmolLM2-135M


def _calls(tokens):
    """Return the calls of attention while `tokens` tokens are written, and the rows of Q in the last call."""
    steps = ["prompt", *["token"] * (tokens - 1)]  # the input of each step: the prompt gives the first token
    return {"calls": LAYERS * len(steps), "rows": 1}


def _wrong_rows(tokens, padding):
    """Return how many tokens see padding under a causal mask, if it comes after them, and before them."""
    N = tokens + padding
    causal = masks.causal().on(N, N).seen(slice(0, N), slice(0, N))
    there = np.arange(N) < tokens
    return {
        side: int((causal[present] & ~present).any(axis=1).sum())
        for side, present in (("right", there), ("left", there[::-1]))
    }


def _first_query(tokens, room):
    """Return how many keys the first query of a prompt sees, if it is the first or if rows end with the cache."""
    bottom = masks.causal().on(tokens, room).seen(slice(0, 1), slice(0, room))
    return {"right": 1, "bottom_right": int(bottom.sum())}


def _in_chunk(chunk, at):
    return sum(c // chunk == at // chunk for c in range(at + 1))


QUESTIONS = [
    Question(
        "model_calls",
        lambda: _calls(12),
        "the prompt takes one step, which gives the first token, and each other token takes one. 12 steps of 30 "
        "layers are 360 calls. With a cache a step has one row of Q, that of the last token.",
        hint="How many steps are there, if the step of the prompt gives the first token? Each layer calls once.",
        wrong={
            ("calls", 30): "that is one step; each token takes one",
            ("calls", 390): "the step of the prompt gives the first token already",
            ("calls", 330): "the step of the prompt calls attention too",
            ("calls", 12): "each of the 30 layers has its own attention",
            ("calls", 3240): "all 9 heads are in one call",
            ("calls", 930): "the prompt is read in one step, not token by token",
            ("rows", 12): "the cache has K and V of the tokens before; only the last token is new",
            ("rows", 31): "the cache has K and V of the tokens before; only the last token is new",
            ("rows", 30): "the cache has K and V of the tokens before; only the last token is new",
        },
        labels={"calls": "calls of attention", "rows": "rows of Q in the last call"},
    ),
    Question(
        "padding_side",
        lambda: _wrong_rows(25, 12),
        "a token sees only what stands before it. So padding after the tokens is seen by none of them, and "
        "padding before them by all 25. To write, a batch is padded at the left. A test that pads at the right "
        "finds nothing.",
        hint="Which keys may a token see under a causal mask? Is there padding among them?",
        wrong={
            ("right", 25): "padding after a token is hidden from it by the causal mask",
            ("right", 12): "the rows of padding are wrong, but they are not used",
            ("left", 0): "padding before a token is not hidden by the causal mask",
            ("left", 12): "the 12 rows are padding: the question is about tokens that see it",
            ("left", 1): "not only the first token sees what comes before it",
        },
        labels={"right": "wrong tokens, padding after them", "left": "wrong tokens, padding before them"},
    ),
    Question(
        "chunk_keys",
        lambda: {"at_20": _in_chunk(16, 20), "at_32": _in_chunk(16, 32)},
        "chunks are keys 0 to 15, 16 to 31, 32 to 47. The query at 20 sees 16 to 20, and that at 32 begins a "
        "chunk and sees itself alone. A window would show 16 keys to both.",
        hint="In which chunk is the query, and where does that chunk begin?",
        wrong={
            16: "that is a sliding window; a chunk does not move",
            ("at_20", 4): "its own key counts",
            ("at_20", 21): "keys of the chunk before are hidden",
            ("at_32", 0): "a query sees its own key",
            ("at_32", 17): "key 32 is in the chunk of 32 to 47",
            ("at_32", 33): "keys of the chunks before are hidden",
        },
        labels={"at_20": "keys seen from 20", "at_32": "keys seen from 32"},
    ),
    Question(
        "static_cache",
        lambda: _first_query(10, 64),
        "the first query of a prompt sees its own key alone. Aligned bottom-right, it is taken for the 55th of 64 "
        "tokens: it sees 9 keys of the prompt that come later, and 45 rows that nobody has written.",
        hint="Bottom-right: the last query sees all 64 keys, the one before it 63, and so on.",
        wrong={
            ("right", 10): "it is the first of the 10: the others come later",
            ("right", 0): "a query sees its own key",
            ("right", 55): "that is what goes wrong: 54 of these rows are not its past",
            ("bottom_right", 54): "the last of 10 queries sees 64 keys, the first 9 fewer",
            ("bottom_right", 64): "that is the last query; the first sees 9 fewer",
            ("bottom_right", 1): "that would be top-left",
            ("bottom_right", 56): "the first of 10 queries is 9 places before the last",
        },
        labels={"right": "keys, as it should be", "bottom_right": "keys, aligned bottom-right"},
    ),
    Question(
        "pronoun_head",
        lambda: 0.70,  # a test compares with the stored output
        "the mask is causal. In the row of `it` the head sees the words up to `it`, which are the same with "
        "any ending, so its weights are the same too.",
        hint="The model is a decoder. Which words does it see in the row of `it`?",
        wrong={
            1: "the ending says that `it` is the animal, but can the row of `it` see the ending?",
            0: "the ending says that `it` is the animal, and all that changes is the ending",
        },
        tolerance=0.02,
    ),
]
