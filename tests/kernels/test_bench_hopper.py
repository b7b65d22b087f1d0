"""The benchmark of the Hopper kernel: a row says what was timed, a wrong result is not, and ratios are right."""

import subprocess
import sys

import pytest
import torch

from flashlib.bench import harness, hopper, records
from flashlib.bench.problem import Size
from flashlib.kernels.hopper import interpreting

SIZE = Size(1, 2, 1, 150, 64, True)


@pytest.fixture
def on_a_cpu(monkeypatch):
    """The kernel's own code in our interpreter, SDPA's default, and no clock: the peers' speeds are 1, 2, ..."""

    def interpreted(Q, K, V, causal):
        return interpreting.attention(Q, K, V, causal=causal, B_c=64).O

    def clock(names, runs, flops):
        return {"tflops": {name: 1.0 + at if name in runs else None for at, name in enumerate(names)}, "mb": {}}

    mine = {"hopper": interpreted, "ours": hopper.PEERS["ours"], "sdpa_flash": hopper.peers.chosen_sdpa}
    monkeypatch.setattr(hopper, "PEERS", mine)
    monkeypatch.setattr(harness, "compare", clock)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_row_says_what_was_timed(dtype, on_a_cpu):
    torch.manual_seed(0)
    row = hopper.measure(SIZE, dtype, device="cpu")
    assert (row["d"], row["N"], row["H"], row["H_k"], row["causal"]) == (64, 150, 2, 1, True)
    assert row["dtype"] == str(dtype)[6:] and row["tflops"] == {"hopper": 1.0, "ours": 2.0, "sdpa_flash": 3.0}
    assert 0 < row["error"]["hopper"] <= 2 * row["error"]["ours"]
    assert hopper.ratios([row], "ours") == [0.5] and hopper.ratios([row], "sdpa_cudnn") == []
    assert "hopper / ours: geometric mean 0.500 of 1, smallest 0.500" in hopper.summary([row])


def test_a_wrong_result_is_not_timed(on_a_cpu, monkeypatch):
    monkeypatch.setitem(hopper.PEERS, "hopper", lambda Q, K, V, causal: hopper.PEERS["ours"](Q, K, V, not causal))
    with pytest.raises(AssertionError, match="O of hopper at Size.* is wrong"):
        hopper.measure(SIZE, device="cpu")


def test_what_is_timed_is_what_the_kernel_takes():
    for size, dtype in hopper.MORE:
        assert size.d in (64, 128, 256) and dtype in (torch.bfloat16, torch.float16)
    size, dtype = hopper.MORE[0]
    entry = {"kernel": "hopper_forward", **size.compiled, "asked": {"dtype": str(dtype)[6:]}}
    assert set(records.launched(entry)) == {"config", "ttgir", "sass"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_hopper_gpu_it_says_so(tmp_path):
    command = [sys.executable, "-m", "flashlib.bench.hopper", "--out", str(tmp_path / "record.json")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 1 and run.stderr.startswith("The Hopper kernel is timed on a GPU of compute")
    assert len(run.stderr.splitlines()) == 1 and not list(tmp_path.iterdir())
