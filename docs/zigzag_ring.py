"""Causal ring attention in the zigzag layout, forward and backward, on one screen.

python docs/zigzag_ring.py
python -m torch.distributed.run --nproc-per-node 4 docs/zigzag_ring.py

Rank r of P holds pieces r and 2 P - 1 - r of the 2 P pieces of a sequence. Its Q stays; K and V go round the ring.
With its own keys a rank computes causal attention. All its rows see the first half of an earlier rank's keys, and
none sees the second; only the second half of its rows sees a later rank's keys, but all of them. So each hop but
the first is half a square without a mask, the same work on every rank.

`flashlib.ring.distributed` has other masks, layouts and lengths, groups of heads, and the kernels.
Source: Liu and others, Ring Attention with Blockwise Transformers (2023); zhuzilin's ring-flash-attention (2024).
"""

import os

import torch
import torch.distributed as dist
from torch.autograd.functional import vjp
from torch.distributed import run as torchrun
from torch.nn.functional import scaled_dot_product_attention


def attention(Q, K, V):
    """Return O of this rank's rows. Q, K, V: (B, H, n, d), from `split`. All ranks call it and go backward."""
    n, shapes = Q.shape[2], [tuple(X.shape) for X in (Q, K, V)]
    most = torch.tensor([n, -n, n % 2 or len({*shapes}) > 1], device=Q.device)
    dist.all_reduce(most, op=dist.ReduceOp.MAX)  # so all ranks raise, and none is left waiting
    if most[0] != -most[1] or most[2]:
        raise ValueError(f"Q, K and V are {shapes} here; all ranks take one shape (B, H, n, d), n even: use split")
    return ZigzagRing.apply(Q, K, V)


class ZigzagRing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V):
        rank, P, dtype = dist.get_rank(), dist.get_world_size(), torch.promote_types(Q.dtype, torch.float32)
        O, lse = torch.zeros_like(Q, dtype=dtype), Q.new_full(Q.shape[:3], -torch.inf, dtype=dtype)
        KV = torch.stack([K, V])
        for hop in range(P):
            next_KV = pass_on(KV) if hop < P - 1 else None  # travels while this hop is computed
            rows, keys, causal = seen(rank, (rank - hop) % P, Q.shape[2])
            K_j, V_j = KV[..., keys, :].to(dtype)
            S = scores(Q[:, :, rows].to(dtype), K_j, causal)
            lse_j = S.logsumexp(dim=-1)
            O_j = torch.exp(S - lse_j[..., None]) @ V_j
            O_i, lse_i = O[:, :, rows], lse[:, :, rows]  # views: the hop is merged into O and lse in place
            both = torch.logaddexp(lse_i, lse_j)
            O_i.mul_(torch.exp(lse_i - both)[..., None]).add_(torch.exp(lse_j - both)[..., None] * O_j)
            lse_i.copy_(both)
            KV = next_KV() if next_KV else None
        O = O.to(Q.dtype)
        ctx.save_for_backward(Q, K, V, O, lse)
        return O

    @staticmethod
    def backward(ctx, dO):
        Q, K, V, O, lse = ctx.saved_tensors
        rank, P, dtype, scale = dist.get_rank(), dist.get_world_size(), lse.dtype, Q.shape[3] ** -0.5
        KV, dO = torch.stack([K, V]), dO.to(dtype)
        dQ, dKV, next_dKV = torch.zeros_like(Q, dtype=dtype), torch.zeros_like(KV, dtype=dtype), None
        delta = (dO * O).sum(dim=-1)
        for hop in range(P):
            next_KV = pass_on(KV) if hop < P - 1 else None
            rows, keys, causal = seen(rank, (rank - hop) % P, Q.shape[2])
            Q_i, dO_i, (K_j, V_j) = Q[:, :, rows].to(dtype), dO[:, :, rows], KV[..., keys, :].to(dtype)
            P_ij = torch.exp(scores(Q_i, K_j, causal) - lse[:, :, rows, None])  # final: lse is of all keys
            dS_ij = P_ij * (dO_i @ V_j.mT - delta[:, :, rows, None]) * scale
            dQ[:, :, rows] += dS_ij @ K_j
            dKV = next_dKV() if next_dKV else dKV
            dKV[..., keys, :] += torch.stack([dS_ij.mT @ Q_i, P_ij.mT @ dO_i])
            next_dKV = pass_on(dKV)  # follows its K and V, and goes home after the last hop
            KV = next_KV() if next_KV else None
        dK, dV = next_dKV()
        return dQ.to(Q.dtype), dK.to(K.dtype), dV.to(V.dtype)


def seen(rank, source, n):
    """Return which rows of a rank see which keys of rank `source`, of n each, and whether the hop is causal."""
    if source == rank:
        return slice(0, n), slice(0, n), True
    return (slice(0, n), slice(0, n // 2), False) if source < rank else (slice(n // 2, n), slice(0, n), False)


def scores(Q, K, causal):
    S = Q @ K.mT * Q.shape[3] ** -0.5
    return S.masked_fill(torch.ones_like(S, dtype=torch.bool).triu(1), -torch.inf) if causal else S


def pass_on(X):
    """Start to send X to the next rank; return a function that waits for what the previous rank sends."""
    rank, P, arriving = dist.get_rank(), dist.get_world_size(), torch.empty_like(X)
    send, receive = (dist.isend, X, (rank + 1) % P), (dist.irecv, arriving, (rank - 1) % P)
    copies = dist.batch_isend_irecv([dist.P2POp(*send), dist.P2POp(*receive)])

    def wait():
        for copy in copies:
            copy.wait()
        return arriving

    return wait


def split(X, rank, P):
    """Return what one of P ranks holds of X, (B, H, N, d)."""
    if X.shape[2] % (2 * P):
        raise ValueError(f"N is {X.shape[2]}; zigzag over {P} ranks takes a multiple of {2 * P}: pad the sequence")
    pieces = X.chunk(2 * P, dim=2)
    return torch.cat([pieces[rank], pieces[2 * P - 1 - rank]], dim=2)


if __name__ == "__main__":
    if "RANK" not in os.environ:  # start this file again, as four ranks
        torchrun.main(["--standalone", "--nproc-per-node", "4", __file__])
        raise SystemExit
    dist.init_process_group("gloo")
    torch.manual_seed(0)  # every rank draws the same whole tensors
    rank, P = dist.get_rank(), dist.get_world_size()
    *QKV, dO = torch.randn(4, 2, 3, 24 * P, 16, dtype=torch.float64)
    whole = vjp(lambda *QKV: scaled_dot_product_attention(*QKV, is_causal=True), tuple(QKV), dO)  # O, (dQ, dK, dV)
    ours = vjp(attention, tuple(split(X, rank, P) for X in QKV), split(dO, rank, P))
    pairs = zip((ours[0], *ours[1]), (whole[0], *whole[1]), strict=True)
    error = max((X - split(Y, rank, P)).abs().max().item() for X, Y in pairs)
    print(f"rank {rank} of {P}: O, dQ, dK and dV differ from whole attention by at most {error:.0e}")
    dist.destroy_process_group()
