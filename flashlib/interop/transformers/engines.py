"""The engines: attentions of flashlib on tensors (B, H, N, d), or your own function.

An engine is called like `flashlib.torch_ref.attention`: engine(Q, K, V, causal=, mask=, scale=), and returns O and
lse. An engine that also takes `sink` adds it itself. One that takes `keys` gets all of K and V, of which only the
first `keys` count; for others K and V are cut. One that takes `bias`, which broadcasts to all scores, adds it; for
others it is part of the mask. One that takes `dropout` drops weights with that probability.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flashlib import masks, tiled, torch_ref
from flashlib import sink as sinks
from flashlib.inputs import resolve_scale
from flashlib.interop.transformers import dropping
from flashlib.interop.transformers.call_mask import FEW
from flashlib.types import Attention

SMALLEST = 16  # d that kernels support


def by_kernels(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, mask: masks.Mask | None = None,
    scale: float | None = None, sink: torch.Tensor | None = None, keys: int | None = None, dropout: float = 0.0,
    portable: bool = False,
) -> Attention:  # fmt: skip
    """Return O and lse from the Triton kernels: from `decode` for few queries without gradients and mask.

    dropout: see `dropping`. portable: as in `kernels.attention`.

    keys: only so many of the first keys count; None: all. A static cache is read in place, so each step has the
    same plan as the one before.
    """
    from flashlib import kernels  # imported late: the other engines do not need Triton

    scale, d_v = resolve_scale(scale, Q.shape[-1]), V.shape[-1]
    narrow = min(Q.shape[-1], d_v) < SMALLEST
    if narrow:
        Q, K, V = (_wide_enough(X) for X in (Q, K, V))
    few = mask is None and Q.shape[2] <= FEW and not dropout
    if few and not _watched(Q, K, V, sink) and K.stride(3) == V.stride(3) == 1:
        keys = K.shape[2] if keys is None else keys
        lengths = torch.full((len(Q),), keys, dtype=torch.int32, device=Q.device)
        O, lse = kernels.decode.attention(Q, K, V, lengths, causal=causal, scale=scale, sink=sink)
    else:
        if keys not in (None, K.shape[2]):
            K, V = K[:, :, :keys], V[:, :, :keys]
        if dropout:
            O, lse = dropping.attention(Q, K, V, dropout, causal=causal, mask=mask, scale=scale, sink=sink)
        else:
            O, lse = kernels.attention(
                Q, K, V, causal=causal, mask=mask, scale=scale, sink=sink, portable=portable
            )
    return Attention(O[..., :d_v] if narrow else O, lse)


def _wide_enough(X):
    """Return X, its last axis padded with zeros if it is too short; they change no score and no sum."""
    return X if X.shape[-1] >= SMALLEST else torch.nn.functional.pad(X, (0, SMALLEST - X.shape[-1]))


def _watched(*tensors):
    return torch.is_grad_enabled() and any(X is not None and X.requires_grad for X in tensors)


def by_tiles(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, mask: masks.Mask | None = None,
    scale: float | None = None, sink: torch.Tensor | None = None, bias: torch.Tensor | None = None,
) -> Attention:  # fmt: skip
    """Return O and lse from `flashlib.tiled`, head by head, with gradients; bfloat16 is computed in float32."""
    B, H, N_q, _ = Q.shape
    mask = masks.fitted(mask, causal, B, H, N_q, K.shape[2])
    if bias is not None:
        bias = bias.expand(B, H, N_q, K.shape[2])
    return Attention(*_Tiled.apply(Q, K, V, sink, bias, mask, resolve_scale(scale, Q.shape[-1])))


class _Tiled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, sink, bias, mask, scale):
        q, k, v = map(_array, (Q, K, V))
        heads = [
            tiled.attention(q[b, h], k[b, own], v[b, own], mask=_of_head(mask, bias, b, h), scale=scale)
            for b, h, own in _heads(Q, K)
        ]
        O, lse = (torch.from_numpy(np.stack(X)).unflatten(0, Q.shape[:2]) for X in zip(*heads, strict=True))
        found = Attention(O, lse) if sink is None else sinks.add(Attention(O, lse), sink.detach().cpu())
        O, lse = found.O.to(Q), found.lse.to(Q.device)
        ctx.save_for_backward(Q, K, V, sink, bias, O, lse)
        ctx.mask, ctx.scale = mask, scale
        ctx.mark_non_differentiable(lse)
        return O, lse

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dO, _):
        Q, K, V, sink, bias, O, lse = ctx.saved_tensors
        q, k, v, o, do = map(_array, (Q, K, V, O, dO))
        grads = [np.zeros_like(X) for X in (q, k, v)]
        dbias = torch.zeros_like(bias, memory_format=torch.contiguous_format) if ctx.needs_input_grad[4] else None
        for b, h, own in _heads(Q, K):
            of_head = q[b, h], k[b, own], v[b, own], o[b, h], lse[b, h].cpu().numpy(), do[b, h]
            options = {"mask": _of_head(ctx.mask, bias, b, h), "scale": ctx.scale}
            found = tiled.backward(*of_head, **options)
            for dX, at, part in zip(grads, ((b, h), (b, own), (b, own)), found, strict=True):
                dX[at] += part
            if dbias is not None:
                (found,) = tiled.bias_gradients(*of_head, **options)
                dbias[b, h] = torch.from_numpy(found)
        dsink = None if sink is None else sinks.gradient(Attention(O, lse), sink, dO).to(sink)
        return *(torch.from_numpy(dX).to(Q) for dX in grads), dsink, dbias, None, None


def _heads(Q, K):
    """Yield b, h and the head of K and V that h uses."""
    H, group = Q.shape[1], Q.shape[1] // max(K.shape[1], 1)
    return ((b, h, h // group) for b in range(len(Q)) for h in range(H))


def _array(X):
    """Return a tensor as an array; NumPy has no bfloat16."""
    X = X.detach().cpu()
    return np.ascontiguousarray((X.float() if X.dtype == torch.bfloat16 else X).numpy())


def _of_head(mask, bias, b, h):
    """Return the mask of a head, including what is added to its scores."""
    mask = OfHead(mask, b, h)
    return mask if bias is None else mask & masks.bias(_array(bias[b, h]))


class OfHead(masks.Mask):
    """The mask of head h of sequence b, for an attention of a single head."""

    def __init__(self, mask: masks.Mask, b: int, h: int):
        self.mask, self.b, self.h, self.changes_scores = mask, b, h, mask.changes_scores

    def __repr__(self):
        return f"<{self.mask!r}, head {self.h} of sequence {self.b}>"

    def _at(self, place):
        return place._replace(b=self.b, h=self.h)

    def check(self, place: masks.Place) -> None:
        """Raise ValueError if the mask does not fit these sizes."""
        self.mask.check(place)

    def bounds(self, place: masks.Place, r: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the mask's bounds."""
        return self.mask.bounds(self._at(place), r)

    def sees(self, place: masks.Place, r: Any, c: Any) -> Any:
        """Return what the mask sees."""
        return self.mask.sees(self._at(place), r, c)

    def score(self, S: Any, place: masks.Place, r: Any, c: Any) -> Any:
        """Return the changed scores."""
        return self.mask.score(S, self._at(place), r, c)

    def slope(self, S: Any, place: masks.Place, r: Any, c: Any) -> Any:
        """Return the derivative of `score`."""
        return self.mask.slope(S, self._at(place), r, c)


ENGINES: dict[str, Callable] = {
    "kernels": by_kernels,
    "portable": functools.partial(by_kernels, portable=True),
    "tiles": by_tiles,
    "torch_ref": torch_ref.attention,
}


def engine_of(engine: str | Callable) -> Callable:
    """Return the engine with this name, or the given function; raise TypeError or ValueError for anything else."""
    if callable(engine):
        return engine
    if not isinstance(engine, str):
        raise TypeError(f"engine is {engine!r}; pass {_names()}, or a function as flashlib.torch_ref.attention is")
    if engine not in ENGINES:
        raise ValueError(
            f"engine is {engine!r}; accepted are {_names()}, or a function as flashlib.torch_ref.attention is"
        )
    return ENGINES[engine]


def _names():
    return ", ".join(map(repr, ENGINES))


def taken_by(engine: Callable) -> set[str] | None:
    """Return the names of an engine's parameters; None if it takes any keyword."""
    parameters = inspect.signature(engine).parameters.values()
    return None if any(p.kind is p.VAR_KEYWORD for p in parameters) else {p.name for p in parameters}
