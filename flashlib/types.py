"""The records that every implementation shares, and the notation of the course.

Notation, the same in NumPy, torch, Triton, equations and pictures. `Q K V S P O` are the paper's
tensors, `Q_i K_j V_j S_ij P_ij` their tiles, `B_r B_c` the block sizes, `T_r T_c` the block counts,
`N_q N_k d` the sizes. For each row, `m` is the running maximum, `l` the running sum of exponentials and
`alpha = exp(m_old - m)` the factor that rescales what was summed under the old maximum. `O_acc` is always
the unnormalised accumulator, `O` only the finished output. `lse = m + log(l)` is a natural logarithm;
a base-2 one is called `lse2`. `dX` is the gradient of a scalar with respect to `X`, and
`delta = rowsum(dO * O)` is the paper's D, renamed because `d` is the head dimension.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Union

if TYPE_CHECKING:  # only for the names of types: this module imports neither
    import numpy as np
    import torch

Array = Union["np.ndarray", "torch.Tensor"]
"""For functions that take either; a function that takes one of them names it."""

Same = TypeVar("Same", "np.ndarray", "torch.Tensor")
"""For functions that take either, and return the same kind."""

DType = Union[str, type, "np.dtype", "torch.dtype"]
"""The name of a dtype, or a dtype of NumPy or torch."""


class Attention(NamedTuple):
    """What every `attention` returns.

    O: the output, (..., N_q, d_v), with the axes and the dtype of Q; d_v is the last axis of V.
    lse: log-sum-exp of each row of scores, shape of Q without its last axis; fp32, or fp64 for fp64 inputs.
    """

    O: Any
    lse: Any


class Step(NamedTuple):
    """One tile of S, computed: the state of a block of rows before and after it.

    A snapshot: nothing in it changes later. A generator of steps must set `i, j, m, l, O_acc`. All others default
    to None, so that a generator written by hand can stay short.
    """

    i: int  # row block, 0 .. T_r - 1
    j: int  # column block, 0 .. T_c - 1
    m: Any  # (B_r,)
    l: Any  # (B_r,)
    O_acc: Any  # (B_r, d_v), unnormalised
    rows: slice | None = None  # of Q and O
    cols: slice | None = None  # of K and V
    S_ij: Any = None  # (B_r, B_c), scaled and masked
    P_ij: Any = None  # (B_r, B_c), exp(S_ij - m)
    m_old: Any = None
    alpha: Any = None  # (B_r,), exp(m_old - m)
    l_old: Any = None
    O_acc_old: Any = None


class Grads(NamedTuple):
    """What every `backward` returns: the gradients of Q, K and V, each of the shape and dtype of its tensor."""

    dQ: Any
    dK: Any
    dV: Any


class BackwardStep(NamedTuple):
    """One tile of the backward pass, computed: the gradients that its loop accumulates, after it.

    A snapshot, as a Step is. A loop over row blocks inside accumulates dK_j and dV_j, one over column blocks dQ_i;
    what a loop does not accumulate is None.
    """

    i: int  # row block
    j: int  # column block
    dQ_i: Any = None  # (B_r, d), not yet multiplied by scale
    dK_j: Any = None  # (B_c, d)
    dV_j: Any = None  # (B_c, d_v)
    rows: slice | None = None  # of Q, O, dO and dQ
    cols: slice | None = None  # of K, V, dK and dV
    S_ij: Any = None  # (B_r, B_c), scaled and masked
    P_ij: Any = None  # (B_r, B_c), exp(S_ij - lse)
    dP_ij: Any = None  # (B_r, B_c), dO_i V_j^T
    dS_ij: Any = None  # (B_r, B_c), P_ij * (dP_ij - delta), times the slope of a mask that changes scores


@dataclass
class Traffic:
    """Bytes moved between HBM and SRAM."""

    read: int = 0
    written: int = 0

    @property
    def total(self) -> int:
        return self.read + self.written


Record = dict[str, Any]
"""A value that is written as JSON, or was read from it."""
