"""FlashAttention on Hopper, in Gluon: kernels that say which warp does what.

attention     both passes as one operation of PyTorch, with gradients
forward       the forward pass: the kernel and `attention`
backward      its gradients: the kernel and `backward`
launch        which tensors the forward takes, and its tiles, grid and descriptors; launch_backward: the backward's
ladder        numbered, frozen teaching versions, one idea more in each
instrumented  the same kernels with marks, which write when what happened
interpreter   a kernel's own code on a CPU: run, under random schedules; gluon, a stub of Gluon; threads, its roles
"""

import torch

from flashlib.types import Attention


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, mask: None = None,
    scale: float | None = None, deterministic: bool = False,
) -> Attention:  # fmt: skip
    """Return softmax(Q K^T * scale) V and the log-sum-exp of each row, with gradients, by kernels for Hopper.

    Q, K, V, causal, mask, scale, O, lse, errors: as in `forward.attention`. deterministic: as in
    `kernels.autograd.attention`, but False by default. At d = 256, and wherever they are faster, the portable
    kernels compute the gradients.
    """
    from flashlib.kernels import autograd  # only when called: a module here may be imported without a GPU
    from flashlib.kernels.hopper import forward

    return autograd.attention(
        Q, K, V, causal=causal, mask=mask, scale=scale, deterministic=deterministic, forward=forward
    )
