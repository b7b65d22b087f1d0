"""What a rank computes of a hop on a GPU: the kernels, which return fp32 for parts of rows and keys."""

import torch

from flashlib.kernels import backward as kernel
from flashlib.kernels import forward
from flashlib.kernels import merge as merging
from flashlib.kernels.launch.inputs import check_attention
from flashlib.masks import Mask
from flashlib.types import Attention, Grads

WIDE = {"out_dtype": torch.float32}


def check(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> None:
    """Raise TypeError or ValueError unless the kernels take these tensors."""
    check_attention(Q, K, V, False, head_dims=forward.HEAD_DIMS, grouped=True, differentiable=True, values=True)


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, mask: Mask, scale: float, dtype: torch.dtype | None = None
) -> Attention:  # fmt: skip
    """Return O and lse of these rows by these keys. dtype: of O, that of Q; None for fp32."""
    return forward.attention(
        Q, K, V, mask=mask, scale=scale, out_dtype=None if dtype == Q.dtype else torch.float32
    )


def backward(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, lse: torch.Tensor, dO: torch.Tensor, delta: torch.Tensor,
    mask: Mask, scale: float,
) -> Grads:  # fmt: skip
    """Return what these keys and rows add to dQ, dK and dV, in fp32. lse, delta: of whole rows."""
    return kernel.backward(Q, K, V, None, lse, dO, delta=delta, mask=mask, scale=scale, **WIDE)


merge = merging.merge
delta_of = kernel.delta_of
