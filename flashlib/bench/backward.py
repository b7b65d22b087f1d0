"""The backward pass: dQ, dK and dV from what the forward pass of each peer kept, with 2.5 times its FLOPs."""

import torch

from flashlib import cost, torch_ref
from flashlib.bench import harness
from flashlib.bench.peers import BACKWARD_PEERS, EAGER_LIMIT


def measure(B, H, N, d, causal, device="cuda") -> dict:
    """Return TFLOP/s and memory of every peer at one size, its gradients verified on one head before."""
    Q, K, V, dO = (torch.randn(B, H, N, d, device=device, dtype=torch.bfloat16) for _ in range(4))
    Q, K, V = (X.requires_grad_() for X in (Q, K, V))
    head = [X.detach()[-1:, -1:] for X in (Q, K, V, dO)]
    exact, plain = reference(*head, causal)
    runs = {}
    for name, peer in BACKWARD_PEERS.items():
        if name == "eager" and N > EAGER_LIMIT:
            continue
        O = peer(Q, K, V, causal)

        def run(O=O):
            return torch.autograd.grad(O, (Q, K, V), dO, retain_graph=True)

        for which, X, *others in zip(("dQ", "dK", "dV"), run(), exact, plain, strict=True):
            what = f"{which} of {name} at d={d}, causal={causal}, N={N}"
            harness.verify(what, X[-1:, -1:], *others)
        runs[name] = run
    flops = B * H * cost.backward_flops(N, N, d, causal=causal)
    return {"d": d, "causal": causal, "N": N, **harness.compare(BACKWARD_PEERS, runs, flops)}


def reference(Q, K, V, dO, causal):
    """Return gradients by autograd: in fp64, and of standard attention as people write it in the dtype of Q."""

    def gradients(attention, *tensors):
        leaves = [X.detach().requires_grad_() for X in tensors]
        return torch.autograd.grad(attention(*leaves), leaves, dO.to(leaves[0].dtype))

    exact = gradients(lambda *X: torch_ref.attention(*X, causal=causal).O, Q.double(), K.double(), V.double())
    return exact, gradients(lambda *X: BACKWARD_PEERS["eager"](*X, causal), Q, K, V)
