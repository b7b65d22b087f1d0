"""Attention as computed by others on a GPU, all with one signature: run(Q, K, V, causal) -> O.

Tensors are (B, H, N, d) with N_q = N_k, so torch's top-left causal mask is the bottom-right one. Q may have a
multiple of the heads of K and V, except with `eager`.
"""

import functools
import importlib
import importlib.util
from collections.abc import Callable
from types import ModuleType

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

NEEDED = ("ours", "ours_fused", "sdpa_flash")  # a run fails without these; without other peers it says why
EAGER_LIMIT = 4096  # S and P of longer sequences take tens of gigabytes


@functools.cache
def kernels(name: str) -> ModuleType:
    """Return a module of flashlib.kernels, imported only when it is used, as Triton may not be installed."""
    return importlib.import_module(f"flashlib.kernels.{name}")


def ours(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, **options: int | bool | None
) -> torch.Tensor:
    return kernels("forward").attention(Q, K, V, causal=causal, **options).O


def differentiable(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool) -> torch.Tensor:
    return kernels("autograd").attention(Q, K, V, causal=causal, portable=True).O


class _WithBackward(torch.autograd.Function):
    """Our forward pass with a chosen backward pass; autograd would choose the faster one."""

    @staticmethod
    def forward(ctx, backward, Q, K, V, causal):
        O, lse = kernels("forward").attention(Q, K, V, causal=causal)
        ctx.save_for_backward(Q, K, V, O, lse)
        ctx.backward, ctx.causal = backward, causal
        return O

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dO):
        return None, *ctx.backward(*ctx.saved_tensors, dO, causal=ctx.causal), None


def with_backward(
    name: str, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, **options: bool
) -> torch.Tensor:
    """Return O, with the gradients computed by `backward` of the module of this name, with these options."""
    return _WithBackward.apply(functools.partial(kernels(name).backward, **options), Q, K, V, causal)


def eager(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool) -> torch.Tensor:
    return kernels("ladder.r1_eager").output(Q, K, V, causal)[0]


def sdpa(backend: SDPBackend, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool) -> torch.Tensor:
    with sdpa_kernel(backend):
        return chosen_sdpa(Q, K, V, causal)


def chosen_sdpa(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool) -> torch.Tensor:
    """SDPA with the backend that the caller has chosen, as choosing one takes CPU time."""
    return scaled_dot_product_attention(Q, K, V, is_causal=causal, enable_gqa=Q.shape[1] != K.shape[1])


@functools.cache
def compiled_flex() -> Callable:
    importlib.import_module("flashlib.private_apis.of_torch").let_flex_recompile()
    return torch.compile(flex_attention, dynamic=False, fullgraph=True)


@functools.lru_cache(maxsize=1)
def _causal_blocks(N, device):
    return create_block_mask(lambda b, h, q, k: q >= k, None, None, N, N, device=device)


def flex(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool) -> torch.Tensor:
    mask = _causal_blocks(Q.shape[2], Q.device) if causal else None
    return compiled_flex()(Q, K, V, block_mask=mask, enable_gqa=Q.shape[1] != K.shape[1])


def fa4(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool) -> torch.Tensor:
    from flash_attn.cute import flash_attn_func

    O = flash_attn_func(*(X.transpose(1, 2) for X in (Q, K, V)), causal=causal)  # takes (B, N, H, d)
    return (O[0] if isinstance(O, tuple) else O).transpose(1, 2)


BACKENDS = {
    "sdpa_flash": SDPBackend.FLASH_ATTENTION,
    "sdpa_cudnn": SDPBackend.CUDNN_ATTENTION,
    "sdpa_efficient": SDPBackend.EFFICIENT_ATTENTION,
}
PEERS: dict[str, Callable] = {
    "ours": ours,
    **{name: functools.partial(sdpa, backend) for name, backend in BACKENDS.items()},
    "flex": flex,
    "eager": eager,
}
BACKWARD_PEERS: dict[str, Callable] = {
    "ours": differentiable,
    "ours_fused": functools.partial(with_backward, "backward", deterministic=False),
    **{name: peer for name, peer in PEERS.items() if name != "ours"},
}
if importlib.util.find_spec("flash_attn") and importlib.util.find_spec("flash_attn.cute"):
    PEERS["fa4"] = BACKWARD_PEERS["fa4"] = fa4
