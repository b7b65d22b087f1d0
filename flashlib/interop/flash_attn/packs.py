"""flash_attn_varlen_func and its packed forms: sequences of any lengths, one after another, (T, H, d)."""

from collections.abc import Sequence
from numbers import Integral

import torch

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


def flash_attn_varlen_func(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int, max_seqlen_k: int, dropout_p: float = 0.0, softmax_scale: float | None = None,
    causal: bool = False, window_size: Sequence[int] = (-1, -1), softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None, deterministic: bool = False, return_attn_probs: bool = False,
    block_table: torch.Tensor | None = None,
) -> Results:  # fmt: skip
    """Return the attention of packed sequences, q (T_q, H_q, d) over k and v (T_k, H_k, d): out, (T_q, H_q, d).

    Options are those of flash_attn 2.8.3; differentiable. With block_table, (B, most) of int32, k and v are pages,
    (pages, page, H_k, d), whose tokens are copied first. With return_attn_probs, also return the log-sum-exp,
    (H_q, T_q), and S_dmask. Raises TypeError or ValueError for unsupported arguments, before any work.
    """
    options = options_of(
        q, dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic, return_attn_probs
    )
    _check_longest("max_seqlen_q", max_seqlen_q, cu_seqlens_q)
    _check_longest("max_seqlen_k", max_seqlen_k, cu_seqlens_k)
    if block_table is not None:
        k, v = _of_pages(k, v, block_table, cu_seqlens_k, int(max_seqlen_k))
    for name, X in (("q", q), ("k", k), ("v", v)):
        if not isinstance(X, torch.Tensor) or X.ndim != 3:
            given = tuple(X.shape) if isinstance(X, torch.Tensor) else type(X).__name__
            raise ValueError(f"{name} is {given}; pass a tensor of packed tokens, (T, H, d)")
    if isinstance(cu_seqlens_q, torch.Tensor):
        check_slopes(options.slopes, len(cu_seqlens_q) - 1, q.shape[1], q)
    seed, d_v = seed_for(options, q), v.shape[-1]
    q, k, v = widened(q, k, v)
    O, lse = varlen.attention(
        q, k, v, cu_seqlens_q, cu_seqlens_k, causal=options.causal, mask=options.mask, slopes=options.slopes,
        scale=options.scale, dropout=options.p, seed=seed,
    )  # fmt: skip
    O = O[..., :d_v]
    if not options.probabilities:
        return O
    longest = int(max_seqlen_q), int(max_seqlen_k)
    return O, lse_of_package(lse).mT, S_dmask(q, k, cu_seqlens_q, cu_seqlens_k, *longest, options, seed)


def _check_longest(name, longest, cu):
    """Raise TypeError or ValueError if a sequence is longer, as far as that is known without waiting."""
    if isinstance(longest, torch.Tensor) and longest.ndim == 0 and not longest.is_floating_point():
        longest = int(longest)
    if isinstance(longest, bool) or not isinstance(longest, Integral) or longest < 0:
        raise TypeError(f"{name} is {longest!r}; pass a whole number, the length of the longest sequence")
    if isinstance(cu, torch.Tensor) and not cu.is_cuda and cu.ndim == 1 and len(cu) > 1:
        if int(cu.diff().max()) > longest:
            raise ValueError(f"{name} is {longest}, and a sequence has {int(cu.diff().max())} tokens")


def _of_pages(k, v, block_table, cu_k, longest):
    """Return the tokens of pages as a pack; raise TypeError or ValueError unless they are a cache in pages."""
    if not isinstance(block_table, torch.Tensor) or block_table.dtype != torch.int32 or block_table.ndim != 2:
        raise TypeError(f"block_table is {_said(block_table)}; pass a tensor (B, most) of int32")
    if not isinstance(cu_k, torch.Tensor) or cu_k.ndim != 1 or len(cu_k) != len(block_table) + 1:
        raise ValueError(
            f"cu_seqlens_k is {_said(cu_k)}; pass a tensor ({len(block_table) + 1},), for block_table"
        )
    for name, X in (("k", k), ("v", v)):
        if not isinstance(X, torch.Tensor) or X.ndim != 4:
            raise ValueError(f"{name} is {_said(X)}; with block_table pass pages, (pages, page, H_k, d)")
    most = block_table.shape[1] * k.shape[1]
    if longest > most:
        raise ValueError(f"max_seqlen_k is {longest}, and block_table has room for {most} tokens of a sequence")
    T = len(block_table) * longest if cu_k.is_cuda else int(cu_k[-1])
    return tuple(varlen.gathered(X.transpose(1, 2), block_table, cu_k, T) for X in (k, v))


def _said(X):
    return f"{tuple(X.shape)} of {X.dtype}" if isinstance(X, torch.Tensor) else type(X).__name__


def flash_attn_varlen_kvpacked_func(
    q: torch.Tensor, kv: torch.Tensor, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, max_seqlen_q: int,
    max_seqlen_k: int, dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False,
    window_size: Sequence[int] = (-1, -1), softcap: float = 0.0, alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False, return_attn_probs: bool = False,
) -> Results:  # fmt: skip
    """Do the same as flash_attn_varlen_func, with k and v in one tensor, (T_k, 2, H_k, d)."""
    k, v = unpacked("kv", kv, 2, 1, "k and v in one tensor, (T, 2, H_k, d)")
    return flash_attn_varlen_func(
        q, k, v, cu_seqlens_q, cu_seqlens_k,
        max_seqlen_q, max_seqlen_k, dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes,
        deterministic, return_attn_probs,
    )  # fmt: skip


def flash_attn_varlen_qkvpacked_func(
    qkv: torch.Tensor, cu_seqlens: torch.Tensor, max_seqlen: int, dropout_p: float = 0.0,
    softmax_scale: float | None = None, causal: bool = False, window_size: Sequence[int] = (-1, -1),
    softcap: float = 0.0, alibi_slopes: torch.Tensor | None = None, deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Results:  # fmt: skip
    """Do the same as flash_attn_varlen_func, with q, k and v in one tensor, (T, 3, H, d)."""
    q, k, v = unpacked("qkv", qkv, 3, 1, "q, k and v in one tensor, (T, 3, H, d)")
    return flash_attn_varlen_func(
        q, k, v, cu_seqlens, cu_seqlens, max_seqlen,
        max_seqlen, dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic,
        return_attn_probs,
    )  # fmt: skip
