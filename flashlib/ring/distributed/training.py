"""What training over ranks needs besides attention: parts of a sequence, their positions and labels, a mean loss.

    tokens = training.split(tokens, layout=layout)             # (B, n), of this rank
    at = training.positions(N, layout=layout)                   # (n,), for rotary embedding: cos[at], sin[at]
    labels = training.labels(tokens, layout=layout)             # (B, n), the next tokens, across cuts too
    losses = cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none", ignore_index=IGNORED)
    loss = training.mean(losses, labels.flatten() != IGNORED, averaged_over=P)

DDP and fully_shard average gradients over the ranks of their group. The loss here is already a mean over all
tokens: each rank's gradient is its share, and the shares add up. So tell `mean` over how many ranks gradients are
averaged; without DDP or fully_shard, sum the gradients yourself (all_reduce, SUM) and leave it at 1.
"""

from typing import Any

import numpy as np
import torch

from flashlib.inputs import check_counts
from flashlib.masks import runs as items
from flashlib.ring import agree, head_groups, layouts
from flashlib.ring.distributed import link
from flashlib.ring.distributed.axes import axis_of

IGNORED = -100
"""The label of a token that has no next token: torch's cross_entropy ignores it by default."""


def positions(
    N: int, *, group: Any = None, layout: str = "zigzag", heads: int = 1, device: Any = None
) -> torch.Tensor:
    """Return the positions of this rank's tokens, of N in all, in the order in which it holds them.

    group: as in `ring.attention`. heads: 1, or for `two_d` how many ranks share heads; `group` then has all ranks.
    """
    ranks = axis_of(group)
    return torch.from_numpy(_positions(N, ranks.size, ranks.me, layout, heads)).to(device)


def split(
    X: torch.Tensor, *, group: Any = None, layout: str = "zigzag", heads: int = 1, dim: int = 1
) -> torch.Tensor:
    """Return a copy of what this rank holds of X, with gradients. dim: the axis of the whole sequence."""
    at = positions(X.shape[dim], group=group, layout=layout, heads=heads, device=X.device)
    return X.index_select(dim, at)


def join(
    X: torch.Tensor, *, group: Any = None, layout: str = "zigzag", heads: int = 1, dim: int = 1
) -> torch.Tensor:
    """Return, on every rank, the whole tensor of which X is this rank's part: it undoes `split`. No gradients.

    All ranks of the group call it. Raises ValueError, the same on all, if their parts are not a cut of a sequence
    or differ in more than its length.
    """
    ranks, X = axis_of(group), X.detach().movedim(dim, 0)
    alike: dict = {"dtype": X.dtype, "other_axes": tuple(X.shape[1:]), "layout": layout, "heads": heads}
    agree.check("training.join", ranks.group, dim=dim, **alike)
    counts = link.gather(ranks.group, torch.tensor([X.shape[0]], device=X.device), [1] * ranks.size)
    sizes, N = [int(n) for n in counts], sum(map(int, counts))
    order = [_positions(N, ranks.size, r, layout, heads) for r in range(ranks.size)]
    if (expected := list(map(len, order))) != sizes:
        raise ValueError(f"the ranks have {sizes} tokens; {N} tokens in a {layout} layout are {expected}")
    row = X[0].numel() if len(X) else X.new_empty(X.shape[1:]).numel()
    flat = link.gather(ranks.group, X.contiguous().reshape(-1), [n * row for n in sizes])
    whole = torch.cat([part.view(n, *X.shape[1:]) for part, n in zip(flat, sizes, strict=True)])
    at = torch.from_numpy(np.argsort(np.concatenate(order))).to(X.device)
    return whole[at].movedim(0, dim)


def labels(
    tokens: torch.Tensor, *, group: Any = None, layout: str = "zigzag", heads: int = 1, ignored: int = IGNORED
) -> torch.Tensor:
    """Return the token after each of this rank's, (B, n), which another rank may hold; `ignored` after the last.

    tokens: (B, n), this rank's. All ranks of the group call it: it gathers the tokens, which are few bytes.
    """
    whole = join(tokens, group=group, layout=layout, heads=heads)
    after = torch.cat([whole[:, 1:], torch.full_like(whole[:, :1], ignored)], dim=1)
    return split(after, group=group, layout=layout, heads=heads)


def mean(
    losses: torch.Tensor, counted: torch.Tensor | None = None, *, group: Any = None, averaged_over: int = 1
) -> torch.Tensor:
    """Return the mean of the losses of all ranks; its gradient is that of this rank's share.

    losses: of this rank's tokens, any shape; counted: which of them count, of that shape, or None for all.
    averaged_over: the number of ranks over which gradients are averaged afterwards: 1 without averaging, the
    world's size for DDP, the size of its mesh for fully_shard. All ranks of the group call it. If no loss counts,
    the mean is nan, as in torch.
    """
    check_counts(at_least=1, averaged_over=averaged_over)
    ranks = axis_of(group)
    kept = losses if counted is None else losses[counted]
    mine = torch.stack([kept.detach().double().sum(), kept.new_tensor(kept.numel(), dtype=torch.float64)])
    total, n = torch.stack(link.gather(ranks.group, mine, [2] * ranks.size)).sum(dim=0)  # in the order of ranks
    return _Mean.apply(kept, (total / n).to(losses.dtype), (averaged_over / n).to(losses.dtype))


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, kept, value, weight):
        ctx.shape = kept.shape
        ctx.save_for_backward(weight)
        return value

    @staticmethod
    def backward(ctx, grad):
        (weight,) = ctx.saved_tensors
        return (grad * weight).expand(ctx.shape), None, None


def _positions(N, P, me, layout, heads):
    layouts.check_cut(P, layout)
    head_groups.check_group(P, heads)
    return items.positions(head_groups.runs(N, P, me, layout, heads))
