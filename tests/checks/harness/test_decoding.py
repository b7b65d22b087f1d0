"""How an answer decodes: what it has PyTorch compute, how often it reads keys, and over how many programs."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import flashlib.kernels  # noqa: E402, F401
from flashlib.checks.harness.decoding import Looked, _way  # noqa: E402


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
def test_only_numbers_that_are_made_of_others_are_computed(does, computed):
    looked = Looked()
    with looked:
        does(torch.arange(4.0))
    assert [name.strip("_") for name in looked.computed] == [name.strip("_") for name in computed]
    looked.clear()
    assert not looked.computed


B, H_K, PAGE, D = 3, 2, 16, 8
LENGTHS = np.array([70, 0, 311])


def way(parts, **changes):
    """Return the id of what is found of launches that are just good enough, but for `changes`; "" for nothing.

    Tables have room for 320 keys, which are three of the widest tiles.
    """
    read, programs = (381 + 3 * parts * 32) * H_K * D, B * H_K * min(parts, 3)
    watch = {"sees": True, "products": {(16, D, 32): 1}, "launches": min(parts, 2), "programs": programs}
    watch |= {"read": {"K": read, "V": read, "table": 9}, **changes}
    Q, K = np.zeros((B, 8, 1, D)), np.zeros((64, H_K, PAGE, D))
    found = _way(SimpleNamespace(**watch), Q, K, K, LENGTHS, np.zeros((B, 20)), parts)
    return found.id if found else ""


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_each_part_of_each_head_has_a_program_and_reads_its_keys_once(parts):
    programs, read = B * H_K * min(parts, 3), (381 + 3 * parts * 32) * H_K * D
    assert way(parts) == way(parts, programs=programs + 1) == ""
    assert way(parts, programs=programs - 1) == "not_split"
    assert way(parts, launches=1) == ("one_kernel" if parts > 1 else "")
    for name in "KV":
        few = dict.fromkeys(("K", "V", "table"), read)
        assert way(parts, read=few | {name: read + 1}) == "read_again"
    for name in ("K", "V", "table"):
        assert way(parts, read=few | {name: 0}) == "copied"
    assert way(parts, sees=False, programs=0) == ""
