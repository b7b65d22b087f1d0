"""The questions of this chapter."""

import numpy as np

from flashlib import masks
from flashlib.checks.engine.prediction import Question

LAYERS, H_Q, H_K, D, HIDDEN, MLP = 30, 9, 3, 64, 576, 1536  # of SmolLM2-135M


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


def _window(W, at):
    seen = masks.window(W - 1, 0).on(at + 1, at + 1).seen(slice(at, at + 1), slice(0, at + 1))[0]
    return {"keys": int(seen.sum()), "first": int(seen.argmax())}


def _first_query(tokens, room):
    """Return how many keys the first query of a prompt sees, if it is the first or if rows end with the cache."""
    bottom = masks.causal().on(tokens, room).seen(slice(0, 1), slice(0, room))
    return {"right": 1, "bottom_right": int(bottom.sum())}


def _in_chunk(chunk, at):
    return sum(c // chunk == at // chunk for c in range(at + 1))


def _half():
    """Return N, in thousands, at which attention does as many operations as the products with weights."""
    weights = HIDDEN * D * (2 * H_Q + 2 * H_K) + 3 * HIDDEN * MLP
    return (2 * weights / (4 * D * H_Q / 2) - 1) / 1000


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
        "which_head",
        lambda: {"five": 5 // (H_Q // H_K), "eight": 8 // (H_Q // H_K)},
        "a group has 9 / 3 = 3 heads: 0 to 2 read head 0 of K, 3 to 5 head 1, and 6 to 8 head 2.",
        hint="Three neighbouring heads of Q share a head of K and V.",
        wrong={
            (
                "five",
                2,
            ): "5 % 3 would be right if heads were dealt like cards: the heads of a group are neighbours",
            ("five", 5): "K has only heads 0 to 2",
            ("eight", 8): "K has only heads 0 to 2",
            ("eight", 3): "heads are counted from 0",
        },
        labels={"five": "head of K for head 5", "eight": "head of K for head 8"},
    ),
    Question(
        "scale_again",
        lambda: float(D**0.5),
        "the scores were right after the first 1 / sqrt(64) = 1/8. The second makes them 8 times smaller. Nothing "
        "fails: the weights only become more alike.",
        hint="What is 1 / sqrt(64)? It was multiplied in once more than it should.",
        wrong={
            64: "that is both factors together; one of them belongs there",
            0.125: "that is the factor; the question is how many times smaller",
            2: "1 / sqrt(64) is 1/8",
            1: "two factors of 1/8 are in the scores, and one belongs there",
        },
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
        "window_keys",
        lambda: _window(16, 20),
        "the window counts the query's own key: it sees keys 5 to 20, which are 16.",
        hint="Does the query's own key count? Count back from it.",
        wrong={
            ("keys", 17): "the query's own key is one of the 16",
            ("keys", 21): "that is without a window",
            ("keys", 15): "the query's own key is one of the 16, and it is seen",
            ("keys", 5): "that is a chunk: keys 16 to 20; a window moves with its query",
            ("first", 4): "keys 4 to 20 are 17",
            ("first", 6): "keys 6 to 20 are 15",
            ("first", 16): "that is where a chunk begins; a window moves with its query",
            ("first", 0): "that is without a window",
        },
        labels={"keys": "keys that are seen", "first": "number of the first of them"},
    ),
    Question(
        "mask_table",
        lambda: 4 * 32768**2 / 1e9,
        "a byte for each of 4 * 32768 * 32768 scores is 4.3 GB. It is the same for all heads and layers, but "
        "attention that is careful not to store S would read as much as S in 8 bits for each head.",
        hint="A byte for each score of each sequence; heads share them.",
        wrong={
            1.0737: "there are 4 sequences",
            8.59: "a bool takes one byte",
            17.18: "a bool takes one byte, not 4",
            0.000131: "the table has a row for each query and a column for each key",
        },
        tolerance=0.02,
        unit="GB",
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
        "half_of_step",
        _half,
        "a token takes 2 * 3538944 operations with the weights of a layer, and 4 * 64 * 9 * (N + 1) / 2 for "
        "attention. Both are equal at N = 6143. A model that is wider has this point later.",
        hint="For one token: 2 operations a weight, and on average (N + 1) / 2 keys of 4 d operations in 9 heads.",
        wrong={
            3.071: "causal queries see half of the keys on average",
            12.287: "both products count in attention, S and P V: 4 d operations a score",
            55.295: "each of the 9 heads of Q has its own scores",
            18.431: "that is with the heads of K; each of the 9 heads of Q has its own scores",
        },
        tolerance=0.02,
        unit="thousand tokens",
    ),
]
