"""Outputs for several sets of keys, merged into the output for all of them: merge_state and its relatives."""

import torch

from flashlib.kernels.merge import merge
from tools.flashinfer_stand_in.layouts import LN_2

State = tuple[torch.Tensor, torch.Tensor]  # an output, (N, H, d), and its log-sum-exp to base 2, (N, H)


def merge_state(v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor) -> State:
    """Return the state for the keys of both."""
    return merge_states(torch.stack([v_a, v_b], 1), torch.stack([s_a, s_b], 1))


def merge_state_in_place(
    v: torch.Tensor, s: torch.Tensor, v_other: torch.Tensor, s_other: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> None:  # fmt: skip
    """Merge a state into (v, s), in the rows where mask, (N,) of bool, is True."""
    v_new, s_new = merge_state(v, s, v_other, s_other)
    if mask is not None:
        v_new, s_new = torch.where(mask[:, None, None], v_new, v), torch.where(mask[:, None], s_new, s)
    v.copy_(v_new)
    s.copy_(s_new)


def merge_states(v: torch.Tensor, s: torch.Tensor) -> State:
    """Return the state for the keys of all. v: (N, states, H, d); s: (N, states, H)."""
    O, *others = v.float().permute(1, 2, 0, 3).contiguous()[:, None].unbind()
    lse, *of_others = (s.float() * LN_2).permute(1, 2, 0).contiguous()[:, None].unbind()
    for O_j, lse_j in zip(others, of_others, strict=True):
        merge(O, lse, O_j, lse_j)
    return O[0].transpose(0, 1).to(v.dtype).contiguous(), (lse[0].T / LN_2).contiguous()
