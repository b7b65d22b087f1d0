"""The backward pass: dQ, dK and dV from what the forward pass of each peer kept, with 2.5 times its FLOPs."""

import torch

from flashlib import cost, torch_ref
from flashlib.bench import harness
from flashlib.bench.peers import BACKWARD_PEERS, EAGER_LIMIT, NEEDED


def measure(size, peers, device="cuda") -> dict:
    """Return TFLOP/s and memory of every peer at one size, its gradients verified on one head before."""
    B, H_q, H_k, N, d, causal = size
    shapes = [(B, H, N, d) for H in (H_q, H_k, H_k, H_q)]
    Q, K, V, dO = (torch.randn(shape, device=device, dtype=torch.bfloat16) for shape in shapes)
    Q, K, V = (X.requires_grad_() for X in (Q, K, V))
    exact, plain = reference(*(last_heads(X.detach(), H_k) for X in (Q, K, V, dO)), causal)
    runs = {}
    for name, peer in peers.items():
        if name == "eager" and N > EAGER_LIMIT:
            continue

        def ready(peer=peer):
            O = peer(Q, K, V, causal)
            return lambda: torch.autograd.grad(O, (Q, K, V), dO, retain_graph=True)

        def check(name=name, ready=ready):
            run = ready()
            for which, X, *others in zip(("dQ", "dK", "dV"), run(), exact, plain, strict=True):
                harness.verify(f"{which} of {name} at {size}", last_heads(X, H_k), *others)
            runs[name] = run

        harness.works(name, check, needed=name in NEEDED)
    return harness.compare(peers, runs, B * H_q * cost.backward_flops(N, N, d, causal=causal))


def last_heads(X, H_k):
    """Return the last head of the last sequence: of K and V, or those of Q that read it."""
    return X[-1:, -(X.shape[1] // H_k) :]


def reference(Q, K, V, dO, causal):
    """Return gradients by autograd: in fp64, and of standard attention as people write it in the dtype of Q."""

    def gradients(attention, *tensors):
        Q, K, V = leaves = [X.detach().requires_grad_() for X in tensors]
        O = attention(Q, *(X.expand(-1, Q.shape[1], -1, -1) for X in (K, V)))  # a gradient sums over who read it
        return torch.autograd.grad(O, leaves, dO.to(Q.dtype))

    exact = gradients(lambda *X: torch_ref.attention(*X, causal=causal).O, Q.double(), K.double(), V.double())
    return exact, gradients(lambda *X: BACKWARD_PEERS["eager"](*X, causal), Q, K, V)
