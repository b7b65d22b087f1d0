"""Attention of a single sequence: single_decode_with_kv_cache and single_prefill_with_kv_cache."""

import functools
from typing import Any

import torch

from flashlib import kernels, masks
from flashlib.types import Attention
from tools.flashinfer_stand_in.layouts import Results, by_head, results
from tools.flashinfer_stand_in.options import Options, check_tensors, options_of, slopes_of


def single_decode_with_kv_cache(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, kv_layout: str = "NHD", pos_encoding_mode: str = "NONE",
    use_tensor_cores: bool = False, *, return_lse: bool = False, **given: Any,
) -> Results:  # fmt: skip
    """Return the attention of one query, (H_q, d), over a cache. use_tensor_cores: by the kernel of prefill."""
    given |= {"pos_encoding_mode": pos_encoding_mode, "kv_layout": kv_layout, "return_lse": return_lse}
    if use_tensor_cores:
        found = single_prefill_with_kv_cache(q[None], k, v, causal=True, **given)
        return tuple(X[0] for X in found) if return_lse else found[0]
    options = options_of(**{name: x for name, x in given.items() if name not in ("kv_layout", "return_lse")})
    check_tensors(q, k, v)
    K, V = (by_head(X, kv_layout)[None] for X in (k, v))
    slopes = slopes_of(len(q), q.device) if options.alibi else None
    call = {"causal": True, "mask": options.mask, "scale": options.sm_scale, "slopes": slopes}
    O, lse = kernels.decode.attention(q[None, :, None], K, V, **call)
    return results(Attention(O[0, :, 0], lse[0, :, 0]), return_lse)


def single_prefill_with_kv_cache(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, custom_mask: torch.Tensor | None = None,
    kv_layout: str = "NHD", backend: str = "auto", return_lse: bool = False, **given: Any,
) -> Results:  # fmt: skip
    """Return the attention of q, (N_q, H_q, d), over one sequence of keys.

    custom_mask: (N_q, N_k) of bool, in place of causal. backend: with fa2 the portable kernel computes it, and
    otherwise on a Hopper GPU its own, where it takes the call.
    """
    options = options_of(**given)
    check_tensors(q, k, v)
    Q, K, V = q.transpose(0, 1)[None], *(by_head(X, kv_layout)[None] for X in (k, v))
    mask = _mask(options, custom_mask, Q, K)
    causal = options.causal and custom_mask is None
    call = {"causal": causal, "mask": mask, "scale": options.sm_scale, "portable": backend == "fa2"}
    O, lse = kernels.attention(Q, K, V, **call)
    return results(Attention(O[0].transpose(0, 1), lse[0].T), return_lse)


def single_prefill_with_kv_cache_return_lse(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **given: Any
) -> Results:
    return single_prefill_with_kv_cache(q, k, v, return_lse=True, **given)


def _mask(options: Options, custom_mask: torch.Tensor | None, Q: torch.Tensor, K: torch.Tensor):
    """Return all that hides and changes scores, except causal."""
    (_, H, N_q, _), N_k = Q.shape, K.shape[2]
    found = [options.mask]
    if custom_mask is not None:
        found.append(masks.dense(custom_mask))
    if options.alibi:  # of FlashInfer, it rises after a row's own key, too: slope * (c - r), not -slope * |c - r|
        distance = torch.arange(1 - N_q, N_k, device=Q.device, dtype=torch.float32)
        found.append(masks.distance_bias(-slopes_of(H, Q.device)[:, None] * distance))
    found = [mask for mask in found if mask is not None]
    return functools.reduce(lambda a, b: a & b, found) if found else None
