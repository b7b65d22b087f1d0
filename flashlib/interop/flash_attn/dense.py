"""flash_attn_func and its packed forms: sequences of equal length, (B, N, H, d)."""

from collections.abc import Sequence

import torch

from flashlib import kernels
from flashlib.interop.flash_attn.arguments import (
    Results,
    check_slopes,
    lse_of_package,
    options_of,
    seed_for,
    unpacked,
    widened,
)
from flashlib.interop.flash_attn.probabilities import S_dmask
from flashlib.kernels import varlen

PORTABLE = False  # as `stand_in` was told


def flash_attn_func(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout_p: float = 0.0, softmax_scale: float | None = None,
    causal: bool = False, window_size: Sequence[int] = (-1, -1), softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None, deterministic: bool = False, return_attn_probs: bool = False,
) -> Results:  # fmt: skip
    """Return the attention of q, (B, N_q, H_q, d), over k and v, (B, N_k, H_k, d): out, (B, N_q, H_q, d).

    Options are those of flash_attn 2.8.3; differentiable. With return_attn_probs, also return the log-sum-exp, (B,
    H_q, N_q), and S_dmask. Raises TypeError or ValueError for unsupported arguments, before any work.
    """
    options = options_of(
        q, dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic, return_attn_probs
    )
    for name, X in (("q", q), ("k", k), ("v", v)):
        if not isinstance(X, torch.Tensor) or X.ndim != 4:
            given = tuple(X.shape) if isinstance(X, torch.Tensor) else type(X).__name__
            raise ValueError(f"{name} is {given}; pass a tensor (B, N, H, d)")
    check_slopes(options.slopes, len(q), q.shape[2], q)
    if options.p or options.slopes is not None:
        return _as_pack(q, k, v, options)
    d_v = v.shape[-1]
    Q, K, V = (X.transpose(1, 2) for X in widened(q, k, v))
    O, lse = kernels.attention(
        Q, K, V, causal=options.causal, mask=options.mask, scale=options.scale,
        deterministic=options.deterministic, portable=PORTABLE,
    )  # fmt: skip
    O = O.transpose(1, 2)
    O = O if O.shape[-1] == d_v else O[..., :d_v]
    return (O, lse_of_package(lse), q.new_empty(0)) if options.probabilities else O


def _as_pack(q, k, v, options):
    """Return the results of the kernels for packed sequences, which support dropout and slopes per sequence."""
    (B, N_q, *_), N_k, d_v = q.shape, k.shape[1], v.shape[-1]
    if not len(k) == len(v) == B or N_k != v.shape[1]:
        raise ValueError(
            f"q has shape {tuple(q.shape)}, k {tuple(k.shape)} and v {tuple(v.shape)}; B must be the same, and "
            "N_k of k and v"
        )
    Q, K, V = (X.flatten(0, 1) for X in widened(q, k, v))
    cu_q, cu_k = (torch.arange(B + 1, dtype=torch.int32, device=q.device) * n for n in (N_q, N_k))
    seed = seed_for(options, q)
    O, lse = varlen.attention(
        Q, K, V, cu_q, cu_k, causal=options.causal, mask=options.mask, slopes=options.slopes, scale=options.scale,
        dropout=options.p, seed=seed,
    )  # fmt: skip
    O = O[..., :d_v].unflatten(0, (B, N_q))
    if not options.probabilities:
        return O
    lse = lse_of_package(lse).unflatten(0, (B, N_q)).transpose(1, 2)
    return O, lse, S_dmask(Q, K, cu_q, cu_k, N_q, N_k, options, seed)


def flash_attn_kvpacked_func(
    q: torch.Tensor, kv: torch.Tensor, dropout_p: float = 0.0, softmax_scale: float | None = None,
    causal: bool = False, window_size: Sequence[int] = (-1, -1), softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None, deterministic: bool = False, return_attn_probs: bool = False,
) -> Results:  # fmt: skip
    """Do the same as flash_attn_func, with k and v in one tensor, (B, N_k, 2, H_k, d)."""
    k, v = unpacked("kv", kv, 2, 2, "k and v in one tensor, (B, N, 2, H_k, d)")
    return flash_attn_func(
        q, k, v, dropout_p, softmax_scale, causal,
        window_size, softcap, alibi_slopes, deterministic, return_attn_probs,
    )  # fmt: skip


def flash_attn_qkvpacked_func(
    qkv: torch.Tensor, dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False,
    window_size: Sequence[int] = (-1, -1), softcap: float = 0.0, alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False, return_attn_probs: bool = False,
) -> Results:  # fmt: skip
    """Do the same as flash_attn_func, with q, k and v in one tensor, (B, N, 3, H, d)."""
    q, k, v = unpacked("qkv", qkv, 3, 2, "q, k and v in one tensor, (B, N, 3, H, d)")
    return flash_attn_func(
        q, k, v, dropout_p, softmax_scale, causal,
        window_size, softcap, alibi_slopes, deterministic, return_attn_probs,
    )  # fmt: skip
