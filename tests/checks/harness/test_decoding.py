"""Findings about a step of decoding other than its result.

`TorchCalls` notes what PyTorch computes, not counting new tensors and views; `_way` judges how keys are read and
parts merged.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import flashlib.kernels  # noqa: E402, F401
from flashlib.checks.harness.decoding import TorchCalls, _way  # noqa: E402
from flashlib.checks.harness.watch import Watch  # noqa: E402


@pytest.mark.parametrize(
    ("does", "computed"),
    [
        (lambda X: torch.empty_like(X).fill_(0.5), []),
        (lambda X: X.new_full((3,), 2.0), []),
        (lambda X: torch.zeros(5, device=X.device), []),
        (lambda X: X.view(2, 2).transpose(0, 1)[0], []),
        (lambda X: X.contiguous().to(X.dtype), []),
        (lambda X: torch.empty_like(X).__setitem__(slice(None), 0.0), []),
        (lambda X: X.shape[0] + X.stride(0) + X.numel(), []),
        (lambda X: X / 2, ["div"]),
        (lambda X: X.to(torch.float16), ["to"]),
        (lambda X: torch.stack([X, X]), ["stack"]),
        (lambda X: torch.empty_like(X).copy_(X), ["copy_"]),
        (lambda X: torch.empty_like(X).__setitem__(slice(None), X), ["__setitem__"]),
        (lambda X: torch.add(input=X, other=1), ["add"]),
        (lambda X: torch.mul(X, 2, out=X), ["mul"]),
        (lambda X: X.__imul__(2), ["mul"]),
    ],
)
def test_only_functions_that_make_numbers_from_others_compute(does, computed):
    calls = TorchCalls()
    with calls:
        does(torch.arange(4.0))
    assert [name.strip("_") for name in calls.computed] == [name.strip("_") for name in computed]
    calls.clear()
    assert not calls.computed


MOST = 2 * 3 * (100 + 300 + 2 * 2 * 32)  # numbers of K: two heads, d = 3; each part may end in a tile of 32 keys
DONE = {"K": MOST, "V": MOST, "table": 1, "launches": 2, "programs": 2 * 2 * 2}


@pytest.mark.parametrize(
    ("parts", "otherwise", "found"),
    [
        (2, {}, None),
        (2, {"K": MOST + 1}, "read_again"),
        (2, {"V": MOST + 1}, "read_again"),
        (2, {"table": 0}, "table_unread"),
        (2, {"launches": 1}, "one_kernel"),
        (1, {"launches": 1, "K": MOST - 2 * 3 * 64, "V": 1, "programs": 4}, None),
        (2, {"programs": 7}, "not_split"),
        (40, {"programs": 2 * 2 * 3}, None),
        (40, {"programs": 2 * 2 * 3 - 1}, "not_split"),
    ],
)
def test_keys_are_read_once_and_each_part_has_its_program(parts, otherwise, found):
    """Two sequences of 100 and 300 keys, whose 19 pages contain three of the widest tiles, and four heads of Q."""
    watch, done = Watch({}), DONE | otherwise
    watch.sees, watch.products[16, 3, 32] = True, 1
    watch.read = {name: done[name] for name in ("K", "V", "table")}
    watch.launches, watch.programs = done["launches"], done["programs"]
    Q, K, table = np.zeros((2, 4, 3)), np.zeros((40, 2, 16, 3)), np.zeros((2, 19), np.int32)
    said = _way(watch, Q, K, K, np.array([100, 300], np.int32), table, parts)
    assert (said.id if said else None) == found
