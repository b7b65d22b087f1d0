"""flash_attn_with_kvcache: write new keys and values into a cache, and attend to all of it."""

from collections.abc import Sequence
from numbers import Integral

import torch

from flashlib.interop.flash_attn.arguments import Results, check_bools, check_slopes, lse_of_package, options_of
from flashlib.kernels import append, decode
from flashlib.kernels.launch.cache_layout import check_tensor


def flash_attn_with_kvcache(
    q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, k: torch.Tensor | None = None,
    v: torch.Tensor | None = None, rotary_cos: torch.Tensor | None = None, rotary_sin: torch.Tensor | None = None,
    cache_seqlens: int | torch.Tensor | None = None, cache_batch_idx: torch.Tensor | None = None,
    cache_leftpad: torch.Tensor | None = None, block_table: torch.Tensor | None = None,
    softmax_scale: float | None = None, causal: bool = False, window_size: Sequence[int] = (-1, -1),
    softcap: float = 0.0, rotary_interleaved: bool = True, alibi_slopes: torch.Tensor | None = None,
    num_splits: int = 0, return_softmax_lse: bool = False,
) -> Results:  # fmt: skip
    """Return the attention of q, (B, N_q, H_q, d), over a cache: out, (B, N_q, H_q, d). It has no gradients.

    Options are those of flash_attn 2.8.3. k_cache, v_cache: (B_cache, N, H_k, d), or pages, (pages, page, H_k, d),
    page a power of two. k and v, (B, N_new, H_k, d), are written to it, in place. num_splits: into about how many
    parts the keys of a sequence are split, 0 to choose. With return_softmax_lse, also return the log-sum-exp, (B,
    H_q, N_q). Raises TypeError or ValueError for unsupported arguments, before any work: also for more tokens than
    the cache or the table has room for, if cache_seqlens is a number or on the CPU. On a GPU it is not read, since
    that would mean waiting: tokens past the room are neither written nor attended to.
    """
    check_bools(rotary_interleaved=rotary_interleaved, return_softmax_lse=return_softmax_lse)
    options = options_of(
        q, 0.0, softmax_scale, causal, window_size, softcap, alibi_slopes, False, return_softmax_lse
    )
    _check(q, k_cache, v_cache, k, v, rotary_cos, rotary_sin, cache_seqlens, cache_batch_idx, block_table)
    check_slopes(alibi_slopes, len(q), q.shape[2], q)
    of_sequences = {"cache_batch_idx": cache_batch_idx, "cache_leftpad": cache_leftpad}
    of_sequences |= {"cache_seqlens": cache_seqlens if isinstance(cache_seqlens, torch.Tensor) else None}
    for name, X in of_sequences.items():
        if X is not None:
            check_tensor(name, X, (len(q),), "(B,)", torch.int32, q=q)
    if isinstance(num_splits, bool) or not isinstance(num_splits, Integral) or num_splits < 0:
        raise TypeError(f"num_splits is {num_splits!r}; pass a whole number, 0 to choose")
    Q, K_cache, V_cache = (X.transpose(1, 2) for X in (q, k_cache, v_cache))
    _check_room(cache_seqlens, 0 if k is None else k.shape[1], _capacity(k_cache, block_table))
    lengths = _lengths(cache_seqlens, q, k_cache, block_table)
    table = cache_batch_idx if block_table is None else block_table
    call = {"causal": options.causal, "mask": options.mask, "scale": options.scale, "slopes": options.slopes}
    call |= {"padding": cache_leftpad, "parts": num_splits * len(q) or None}
    if k is None:
        O, lse = decode.attention(Q, K_cache, V_cache, lengths, table, **call)
    else:
        after = lengths + k.shape[1]
        rotary = None
        if rotary_cos is not None:
            rotary = rotary_cos.float().contiguous(), rotary_sin.float().contiguous()
            each = torch.arange(q.shape[1], device=q.device, dtype=lengths.dtype)
            at = lengths[:, None] + (each if options.causal or options.local else 0 * each)
        decode.check(Q, K_cache, V_cache, after, table, **call)  # before anything is written
        K, V = k.transpose(1, 2), v.transpose(1, 2)
        append.append(K, V, K_cache, V_cache, after, table, rotary=rotary, interleaved=rotary_interleaved)
        if rotary is not None:
            Q = append.rotate(Q, lengths, rotary, at, interleaved=rotary_interleaved)
        O, lse = decode.attention(Q, K_cache, V_cache, after, table, **call)
    O = O.transpose(1, 2)
    return (O, lse_of_package(lse)) if options.probabilities else O


def _check(q, k_cache, v_cache, k, v, rotary_cos, rotary_sin, cache_seqlens, cache_batch_idx, block_table):
    """Raise TypeError or ValueError for arguments that are missing beside others; kernels check the rest."""
    for name, X in (("q", q), ("k_cache", k_cache), ("v_cache", v_cache), ("k", k), ("v", v)):
        if X is None and name in "kv":
            continue
        if not isinstance(X, torch.Tensor) or X.ndim != 4:
            given = tuple(X.shape) if isinstance(X, torch.Tensor) else type(X).__name__
            raise ValueError(f"{name} is {given}; pass a tensor (B, N, H, d), or pages, (pages, page, H_k, d)")
    together = {
        "k": (k, {"v": v, "cache_seqlens": cache_seqlens}),
        "v": (v, {"k": k}),
        "rotary_cos": (rotary_cos, {"rotary_sin": rotary_sin, "k": k}),
        "rotary_sin": (rotary_sin, {"rotary_cos": rotary_cos}),
        "block_table": (block_table, {"cache_seqlens": cache_seqlens}),
    }
    for name, (X, others) in together.items():
        missing = [other for other, Y in others.items() if X is not None and Y is None]
        if missing:
            raise ValueError(f"{name} is given, and {missing[0]} is not: pass both, or leave {name} out")
    if block_table is not None and cache_batch_idx is not None:
        raise ValueError("block_table and cache_batch_idx are given; a cache in pages has no sequences to choose")
    capacity = _capacity(k_cache, block_table)
    for name, X in (("rotary_cos", rotary_cos), ("rotary_sin", rotary_sin)):
        if X is not None and not (isinstance(X, torch.Tensor) and X.is_floating_point() and X.ndim == 2):
            raise TypeError(f"{name} is not a tensor of numbers; pass (N_max, d_rot / 2)")
        if X is not None and len(X) < capacity:
            raise ValueError(f"{name} has {len(X)} positions, and the cache has room for {capacity} tokens")


def _capacity(k_cache, block_table):
    """Return how many tokens a sequence can have."""
    return k_cache.shape[1] * (1 if block_table is None else block_table.shape[-1])


def _check_room(cache_seqlens, new, capacity):
    """Raise ValueError if a sequence has more tokens than there is room for, as far as that is known here."""
    known = cache_seqlens.tolist() if isinstance(cache_seqlens, torch.Tensor) and not cache_seqlens.is_cuda else []
    known = [cache_seqlens] if isinstance(cache_seqlens, Integral) else known
    for b, tokens in enumerate(known):
        if not 0 <= tokens <= capacity - new:
            raise ValueError(
                f"cache_seqlens has {tokens} for sequence {b}, and {new} tokens come: the cache has room for "
                f"{capacity} tokens, so pass 0 to {capacity - new}, or a larger cache or table"
            )


def _lengths(cache_seqlens, q, k_cache, block_table):
    """Return how many tokens each sequence had before the call, (B,), or None: all of a contiguous cache."""
    if isinstance(cache_seqlens, Integral) and not isinstance(cache_seqlens, bool):
        return torch.full((len(q),), int(cache_seqlens), dtype=torch.int32, device=q.device)
    if cache_seqlens is not None and not isinstance(cache_seqlens, torch.Tensor):
        raise TypeError(
            f"cache_seqlens is of type {type(cache_seqlens).__name__}; pass a number, or (B,) of int32"
        )
    return cache_seqlens
