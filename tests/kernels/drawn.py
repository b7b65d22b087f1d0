"""Masks for tests of the kernels: functions with their kernels, masks of batches and heads, and random masks."""

import numpy as np
import torch

from flashlib import kernels, masks  # before triton, which it tells to interpret where there is no GPU
from tests import masked

triton, tl = kernels.triton, kernels.triton.language


@triton.jit
def in_stripes(b, h, r, c):
    return (r - c) % 5 == 0


@triton.jit
def in_stripes_of_heads(b, h, r, c):
    return (r - c) % (b + h + 2) == 0


@triton.jit
def bent(S, h, r, c):
    return S * (1 + 0.1 * S) - tl.where(c % 2 == 1, 1.0, 0.0)


@triton.jit
def bent_slope(S, h, r, c):
    return 1 + 0.2 * S


@triton.jit
def of_heads(S, h, r, c):
    return S * (h + 1) - 0.25 * (c % 3)


@triton.jit
def of_heads_slope(S, h, r, c):
    return h + 1.0


BENT = masks.score(
    lambda S, h, r, c: S * (1 + 0.1 * S) - c % 2, lambda S, h, r, c: 1 + 0.2 * S, kernel=(bent, bent_slope)
)
OF_HEADS = masks.score(
    lambda S, h, r, c: S * (h + 1) - 0.25 * (c % 3),
    lambda S, h, r, c: S * 0 + (h + 1),
    kernel=(of_heads, of_heads_slope),
)


def case(kind, rng, N_q, N_k) -> masked.Case:
    """Return a mask of a kind in masked.KINDS, with its definition, as kernels take it."""
    drawn = masked.draw(kind, rng, N_q, N_k)
    return drawn._replace(mask=BENT) if kind == "score" else drawn


def documents(rng, N_k, longest=40, B=None):
    """Return documents of 1 to `longest` tokens; with B, packed differently in each sequence."""
    ids = [
        np.repeat(np.arange(N_k + 1), rng.integers(1, longest + 1, N_k + 1))[:N_k]
        for _ in range(1 if B is None else B)
    ]
    return masks.documents(ids[0] if B is None else np.stack(ids))


def window(rng, N_k):
    """Return a window that may be wider than a tile, or have no bound on a side."""
    left, right = (None if rng.random() < 0.2 else int(rng.integers(0, max(1, N_k))) for _ in range(2))
    return masks.window(left, 0 if rng.random() < 0.4 else right)


def blocks(rng, N_q, N_k, B_r=16, B_c=32, share=0.4):
    return masks.blocks(rng.random((-(-N_q // B_r), -(-N_k // B_c))) < share, B_r, B_c)


def dense(rng, *shape):
    """Return the mask of a table of this shape, as an array or a tensor."""
    seen = rng.random(shape) < 0.5
    return masks.dense(torch.from_numpy(seen) if rng.random() < 0.5 else seen)


def stripes(of_heads_too=False, kernel=True):
    if of_heads_too:
        f, of_kernel = lambda b, h, r, c: (r - c) % (b + h + 2) == 0, in_stripes_of_heads
    else:
        f, of_kernel = lambda r, c: (r - c) % 5 == 0, in_stripes
    return masks.from_function(f, kernel=of_kernel if kernel else None)


# Of (rng, B, H, N_q, N_k): masks that distinguish batches or heads, and masks with whole tiles.
WIDE = {
    "wide window": lambda rng, B, H, N_q, N_k: masks.window(30, 5),
    "long documents": lambda rng, B, H, N_q, N_k: documents(rng, N_k),
    "causal documents of sequences": lambda rng, B, H, N_q, N_k: masks.causal() & documents(rng, N_k, B=B),
    "documents of sequences and a union": lambda rng, B, H, N_q, N_k: (
        documents(rng, N_k, B=B) | masks.window(2, 0)
    ),
    "slopes of heads": lambda rng, B, H, N_q, N_k: masks.causal() & masks.alibi(masks.alibi_slopes(H)),
    "function of heads": lambda rng, B, H, N_q, N_k: stripes(True, kernel=False),
    "function of heads with a kernel": lambda rng, B, H, N_q, N_k: stripes(True) & documents(rng, N_k, B=B),
    "function with a kernel": lambda rng, B, H, N_q, N_k: stripes(),
    "dense of heads": lambda rng, B, H, N_q, N_k: dense(rng, B, H, N_q, N_k) & masks.window(None, 3),
    "dense of sequences": lambda rng, B, H, N_q, N_k: dense(rng, B, 1, 1, N_k),
    "score of heads": lambda rng, B, H, N_q, N_k: OF_HEADS & masks.window(20, 3),
    "blocks of whole tiles": lambda rng, B, H, N_q, N_k: blocks(rng, N_q, N_k) & masks.causal(),
    "blocks of whole tiles in rows alone": lambda rng, B, H, N_q, N_k: blocks(rng, N_q, N_k, 64, 13),
    "blocks of whole tiles in columns alone": lambda rng, B, H, N_q, N_k: blocks(rng, N_q, N_k, 13, 64),
    "blocks of parts of tiles": lambda rng, B, H, N_q, N_k: blocks(rng, N_q, N_k, 13, 17) & masks.softcap(2.0),
    "new kind of heads": lambda rng, B, H, N_q, N_k: masked.OfHeads() & masks.window(30, None),
    "empty rows": lambda rng, B, H, N_q, N_k: (
        masks.causal() & masks.from_function(lambda r, c: (r % 7 != 3) & (c < 40))
    ),
}
HIDE = {
    "window": lambda rng, B, H, N_q, N_k: window(rng, N_k),
    "prefix": lambda rng, B, H, N_q, N_k: masks.prefix(int(rng.integers(0, N_k + 1))),
    "documents": lambda rng, B, H, N_q, N_k: documents(rng, N_k),
    "documents of sequences": lambda rng, B, H, N_q, N_k: documents(rng, N_k, B=B),
    "blocks": lambda rng, B, H, N_q, N_k: blocks(
        rng, N_q, N_k, *(int(n) for n in rng.choice([5, 16, 32, 64], 2)), rng.random()
    ),
    "dense": lambda rng, B, H, N_q, N_k: dense(rng, *(1 if rng.random() < 0.5 else n for n in (B, H)), N_q, N_k),
    "stripes": lambda rng, *_: stripes(rng.random() < 0.5, rng.random() < 0.5),
    "union": lambda rng, B, H, N_q, N_k: documents(rng, N_k) | window(rng, N_k),
}
CHANGE = {
    "alibi": lambda rng, H: masks.alibi(rng.uniform(0, 0.5, H)),
    "soft cap": lambda rng, H: masks.softcap(float(rng.uniform(0.5, 5))),
    "score": lambda rng, H: [BENT, OF_HEADS][rng.integers(2)],
}


def draw(rng, B, H, N_q, N_k) -> masks.Mask:
    """Return a random mask: one that hides, one that changes scores, or two of either."""
    hide, change = (int(n) for n in rng.choice([(1, 0), (1, 0), (2, 0), (0, 1), (1, 1), (1, 2)]))
    parts = [HIDE[kind](rng, B, H, N_q, N_k) for kind in rng.choice(list(HIDE), hide, replace=False)]
    parts += [CHANGE[kind](rng, H) for kind in rng.choice(list(CHANGE), change, replace=False)]
    mask = parts[0]
    for part in parts[1:]:
        mask = mask & part
    return mask
