"""The inputs of all benchmarks on a GPU, and how results are verified: on one head, against fp64."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch

from flashlib import cost, torch_ref
from flashlib.bench.common import harness
from flashlib.bench.common.peers import EAGER_LIMIT, NEEDED, PEERS


class Size(NamedTuple):
    """H_q is a multiple of H_k."""

    B: int
    H_q: int
    H_k: int
    N: int
    d: int
    causal: bool

    @property
    def compiled(self) -> dict:
        """The size as `records` takes it."""
        return {"d": self.d, "causal": self.causal, "shape": [self.B, self.H_q, self.H_k, self.N]}


class BenchProblem:
    """Random tensors of one size, and the correct results for one head.

    size: a Size. gradients: whether dQ, dK and dV are timed instead of O. whole: verify all heads, not one.
    tensors: Q, K and V. dO: None without gradients.
    """

    def __init__(
        self, size: Size, *, gradients: bool = False, whole: bool = False, dtype: torch.dtype = torch.bfloat16,
        device: str = "cuda",
    ) -> None:  # fmt: skip
        self.size, self.gradients, self.whole = size, gradients, whole
        count = cost.backward_flops if gradients else cost.flops
        self.head_flops = count(size.N, size.N, size.d, causal=size.causal)
        given = tensors(size, 4 if gradients else 3, dtype, device)
        self.tensors, self.dO = given[:3], given[3] if gradients else None

    @functools.cached_property
    def expected(self) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        """{"O": (exact, plain)}, or the same for "dQ", "dK" and "dV".

        The result in fp64, and the result of standard attention in the dtype of Q.
        """

        def reference(Q, K, V):
            return torch_ref.attention(Q, K, V, causal=self.size.causal).O

        standard = functools.partial(PEERS["eager"], causal=self.size.causal) if self.gradients else reference
        given = self.tensors if self.dO is None else [*self.tensors, self.dO]
        part = [self.part(X) for X in given]
        exact = results(reference, *(X.double() for X in part))
        names = ("dQ", "dK", "dV") if self.gradients else ("O",)
        return dict(zip(names, zip(exact, results(standard, *part), strict=True), strict=True))

    @property
    def flops(self) -> int:
        return self.size.B * self.size.H_q * self.head_flops

    def part(self, X: torch.Tensor) -> torch.Tensor:
        """Return the part that is verified: the last head of K and V, and the heads of Q that use it."""
        return X if self.whole else X[-1:, -(X.shape[1] // self.size.H_k) :]

    def run(self, peer: Callable) -> Callable:
        """Return the function that is timed: peer(Q, K, V, causal), or for gradients only its backward pass."""
        if not self.gradients:
            return functools.partial(peer, *self.tensors, self.size.causal)
        leaves = [X.detach().requires_grad_() for X in self.tensors]
        O = peer(*leaves, self.size.causal)
        return lambda: torch.autograd.grad(O, leaves, self.dO, retain_graph=True)

    def verify(self, what: str, given: torch.Tensor | tuple[torch.Tensor, ...], roundings: int = 1) -> None:
        """Raise AssertionError unless the result of a call, O or a tuple of gradients, is correct."""
        given = given if isinstance(given, tuple) else (given,)
        for X, (name, (exact, plain)) in zip(given, self.expected.items(), strict=True):
            harness.verify(f"{name} of {what}", self.part(X), exact, plain, roundings=roundings)


def tensors(
    size: Size, n: int = 3, dtype: torch.dtype = torch.bfloat16, device: str = "cuda"
) -> list[torch.Tensor]:
    """Return the first n of random Q, K, V and dO."""
    shapes = [(size.B, H, size.N, size.d) for H in (size.H_q, size.H_k, size.H_k, size.H_q)]
    return [torch.randn(shape, device=device, dtype=dtype) for shape in shapes[:n]]


def results(
    attention: Callable, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, dO: torch.Tensor | None = None
) -> tuple[torch.Tensor, ...]:
    """Return (O,), or the gradients of Q, K and V if dO is given; computed head by head, as S may be large."""
    group, of_heads = Q.shape[1] // K.shape[1], []
    for head in range(Q.shape[1]):
        of_K = head // group
        parts = Q[:, head : head + 1], *(X[:, of_K : of_K + 1] for X in (K, V))
        leaves = [X.detach().requires_grad_(dO is not None) for X in parts]
        O = attention(*leaves)
        of_heads.append((O,) if dO is None else torch.autograd.grad(O, leaves, dO[:, head : head + 1]))
    of_Q, *shared = (torch.cat(X, 1) for X in zip(*of_heads, strict=True))
    return of_Q, *(X.unflatten(1, (-1, group)).sum(2) for X in shared)


def measure(
    size: Size, peers: dict[str, Callable], gradients: bool = False, device: str = "cuda",
    dtype: torch.dtype = torch.bfloat16, needed: tuple[str, ...] = NEEDED,
) -> dict:  # fmt: skip
    """Return TFLOP/s and memory of every peer at one size, each verified before it is timed.

    needed: the peers without which it fails; of any other that does not work it says why.
    """
    problem, runs = BenchProblem(size, gradients=gradients, dtype=dtype, device=device), {}
    for name, peer in peers.items():
        if name == "eager" and size.N > EAGER_LIMIT:
            continue

        def check(name=name, peer=peer):
            run = problem.run(peer)
            problem.verify(f"{name} at {size}", run())
            runs[name] = run

        harness.works(name, check, needed=name in needed)
    return harness.compare(peers, runs, problem.flops)
