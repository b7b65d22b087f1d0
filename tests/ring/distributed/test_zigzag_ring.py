"""The ring on one screen, docs/zigzag_ring.py, computes attention and its gradients on any number of ranks."""

import functools
import runpy
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("cloudpickle")
from flashlib.ring import processes  # noqa: E402
from tests import oracle  # noqa: E402
from tests.ring.distributed import on_ranks  # noqa: E402

FILE = Path(__file__).parents[3] / "docs" / "zigzag_ring.py"
ON_A_RANK = """
def on_a_rank(cases, refused):
    rank, P = dist.get_rank(), dist.get_world_size()
    results = []
    for *QKV, dO in cases:
        results.append(vjp(attention, tuple(split(X, rank, P) for X in QKV), split(dO, rank, P)))
    return results, [error_of(*shapes[rank]) for shapes in refused]


def error_of(*shapes):
    try:
        attention(*(torch.ones(1, 1, n, d) for n, d in shapes))
    except ValueError as error:
        return str(error)
"""
CASES = [(1, torch.float64), (11, torch.float64), (8, torch.float32), (32, torch.bfloat16)]
"""Tokens of a piece, and a dtype."""
ROUNDING = {torch.float64: 1e-14, torch.float32: 5e-7, torch.bfloat16: 0}
REFUSED = [
    [[(4, 3)] * 3, [(4, 3)] * 3, [(6, 3)] * 3],
    [[(3, 3)] * 3] * 3,
    [[(4, 3)] * 3, [(4, 3), (2, 3), (2, 3)], [(4, 3)] * 3],
    [[(4, 3), (4, 3), (4, 5)]] * 3,
]
"""Sizes (n, d) of Q, K and V on each of three ranks."""


@functools.cache
def functions():
    """Return what the file defines. Ranks are sent its source, as that of a notebook's cell."""
    names = runpy.run_path(str(FILE), run_name="__zigzag_ring__")
    exec(ON_A_RANK, names)
    return names


def tensors(P, n, dtype):
    sizes = {"B": 2, "H": 3, "H_k": 3, "d": 5, "d_v": 5, "N_q": 2 * P * n, "N_k": 2 * P * n, "dtype": dtype}
    return on_ranks.tensors(sizes, seed=n)


@functools.cache
def results(P):
    """Return what ranks 0 to P - 1 return; one run for all tests."""
    cases = [tensors(P, n, dtype)[:4] for n, dtype in CASES]
    return processes.run(functions()["on_a_rank"], cases, REFUSED if P == 3 else [], ranks=P, seconds=100)


@pytest.mark.parametrize("P", [2, 3])
def test_O_and_gradients_are_those_of_one_process(P):
    split, options = functions()["split"], {"causal": True, "mask": None}
    for i, (n, dtype) in enumerate(CASES):
        Q, K, V, dO, dlse = tensors(P, n, dtype)
        exact = on_ranks.one_process(options, *(X.double() for X in (Q, K, V, dO)), 0 * dlse)
        plain = on_ranks.one_process(options, Q, K, V, dO, 0 * dlse)
        O, grads = zip(*(of_rank[i] for of_rank, _ in results(P)), strict=True)
        found = {"O": O} | dict(zip(("dQ", "dK", "dV"), zip(*grads, strict=True), strict=True))
        for name, right, rough in zip(on_ranks.NAMES, exact, plain, strict=True):
            if name == "lse":
                continue
            assert all(X.dtype == dtype for X in found[name])
            right, rough = (torch.cat([split(X, r, P) for r in range(P)]).double() for X in (right, rough))
            given, what = torch.cat(found[name]).double(), f"{name}, {dtype}"
            oracle.assert_close(given, right, plain=rough, rounding=ROUNDING[dtype], what=what)


def test_ranks_whose_tensors_do_not_fit_all_raise():
    of_ranks = [errors for _, errors in results(3)]
    for refused, errors in zip(REFUSED, zip(*of_ranks, strict=True), strict=True):
        assert all("all ranks take one shape (B, H, n, d), n even: use split" in error for error in errors)
        for of_rank, error in zip(refused, errors, strict=True):
            assert error.startswith(f"Q, K and V are {[(1, 1, n, d) for n, d in of_rank]} here")


def test_a_length_that_is_no_multiple_of_2_P_is_refused():
    with pytest.raises(ValueError, match="N is 10; zigzag over 2 ranks takes a multiple of 4: pad the sequence"):
        functions()["split"](torch.ones(1, 1, 10, 3), 0, 2)
