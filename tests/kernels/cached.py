"""Caches for tests of decoding: in any layout, with NaN wherever nothing may be read; attention over them."""

from typing import NamedTuple

import torch

from flashlib import torch_ref

FP8 = torch.float8_e4m3fn


class Problem(NamedTuple):
    """Q, and a cache as `decode.attention` takes it; K_exact, V_exact: its contents, (B, H_k, N, d) of fp64."""

    Q: torch.Tensor
    cache: dict
    K_exact: torch.Tensor
    V_exact: torch.Tensor


def problem(
    device, lengths, *, heads=(4, 2), N_q=1, d=16, d_v=None, dtype=torch.float32, page=0, fp8=False, N=None
):
    """Return queries and a cache of sequences with these lengths, at most N tokens; its pages in random order."""
    B, (H_q, H_k), d_v = len(lengths), heads, d if d_v is None else d_v
    N = max(lengths, default=0) if N is None else N
    N = -(-N // page) * page if page else N
    Q = torch.randn(B, H_q, N_q, d, device=device).to(dtype)
    K, V = (torch.randn(B, H_k, N, size, device=device).to(dtype) for size in (d, d_v))
    scales = {}
    if fp8:
        K, scales["k_scale"] = quantised(K)
        V, scales["v_scale"] = quantised(V)
    exact = [X.double() * s[..., None] for X, s in zip((K, V), scales.values(), strict=True)] if fp8 else (K, V)
    K_exact, V_exact = (X.double() for X in exact)
    after = torch.arange(N, device=device) >= torch.tensor(lengths, device=device)[:, None]
    K, V = (X.float().masked_fill(after[:, None, :, None], torch.nan).to(X.dtype) for X in (K, V))
    cache = {"K": K, "V": V, "lengths": torch.tensor(lengths, dtype=torch.int32, device=device), **scales}
    return Problem(Q, in_pages(cache, page) if page else cache, K_exact, V_exact)


def in_pages(cache, page):
    """Return the same cache in pages, among pages of NaN, to which entries of the table past a length point."""
    B, H_k, N, _ = cache["K"].shape
    most, device = N // page, cache["K"].device
    order = torch.randperm(2 * B * most + 1, device=device).to(torch.int32)
    table = order[1 : B * most + 1].view(B, most)
    made = {"lengths": cache["lengths"], "table": table.clone()}
    for name in cache.keys() - {"lengths"}:
        X = cache[name]
        pool = torch.full((len(order), H_k, page, *X.shape[3:]), torch.nan, device=device).to(X.dtype)
        pool[table.flatten().long()] = X.unflatten(2, (most, page)).transpose(1, 2).flatten(0, 1)
        made[name] = pool
    used = torch.arange(most, device=device) * page < cache["lengths"][:, None]
    made["table"][~used] = order[0]
    return made


def quantised(X):
    """Return X in fp8 and a scale for each row, computed as plainly as possible."""
    scale = X.float().abs().amax(-1) / 448
    return (X.float() / scale[..., None]).to(FP8), scale


def attention(Q, K, V, lengths, **options):
    """Return O and lse of a loop over the sequences, each of its own length, in the dtype of Q, K and V."""
    group = Q.shape[1] // max(K.shape[1], 1)
    outputs = []
    for b, n in enumerate(lengths):
        k, v = (X[b : b + 1, :, :n].repeat_interleave(group, dim=1) for X in (K, V))
        outputs.append(torch_ref.attention(Q[b : b + 1], k, v, **{name: f(b) for name, f in options.items()}))
    return tuple(torch.cat(parts) for parts in zip(*outputs, strict=True))
