"""Numbers in eight bits, for checking kernels: the values they represent, and the errors to allow."""

import torch

from flashlib import torch_ref


def natural(V):
    """Return V with its keys in their order, in fp64, from V with its keys permuted."""
    columns = torch.arange(V.shape[3], device=V.device)
    keys = columns // 16 * 16 + columns // 2 % 2 * 8 + columns // 4 % 4 * 2 + columns % 2
    return torch.zeros_like(V.double()).index_copy_(3, keys, V.double())


def stands_for(small, N_k, permuted):
    """Return the values of the numbers in eight bits: Q, K and V in fp64, K and V with their own heads."""
    V = natural(small.V) if permuted else small.V.double()
    return (
        small.Q.double() * small.q_scale.double()[..., None],
        small.K.double() * small.k_scale.double()[..., None, None],
        V.mT[:, :, :N_k] * small.v_scale.double()[..., None, None] + small.v_mean.double()[:, :, None],
    )


def check(given, small, Q, K, V, causal, scale, weight=2.0**-4, out=2.0**-8, of_lse=1e-3):
    """Compare O and lse with attention in fp64 on Q, K and V as the kernel read them.

    weight: the largest relative error of a weight, 2^-4 if P is in e4m3. Errors of weights multiply V minus its
    mean, as the mean is added at the end. out: the error of a stored number of O. of_lse: the largest error of
    lse.
    """
    group = Q.shape[1] // K.shape[1]
    K, V, mean = (X.repeat_interleave(group, 1) for X in (K, V, small.v_mean.double()[:, :, None]))
    exact = torch_ref.attention(Q, K, V, causal=causal, scale=scale)
    spread = torch_ref.attention(Q, K, (V - mean).abs(), causal=causal, scale=scale).O
    smallest = (V - mean).abs().amax() * 2.0**-15  # of weights that e4m3 ends below, 2^-17 of the largest
    allowed = spread * (weight + 2.0**-12) + smallest + exact.O.abs() * out + 1e-6
    assert ((given.O.double() - exact.O).abs() <= allowed).all()
    unseen = exact.lse.isneginf()
    assert torch.equal(given.lse.isneginf(), unseen) and not given.O[unseen].any()
    lse = exact.lse + small.q_taken.double() * scale
    assert ((given.lse.double() - lse)[~unseen].abs() < of_lse).all()
