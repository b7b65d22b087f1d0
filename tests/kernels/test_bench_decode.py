"""The benchmark of decoding: a row says what was timed, and a wrong result is not timed."""

import pytest
import torch

from flashlib.bench import decode, harness
from flashlib.bench.decode import Size

SIZES = {
    "contiguous": Size(2, 4, 2, 96),
    "pages": Size(2, 4, 2, 96, 16),
    "fp8": Size(2, 4, 1, 96, 0, True),
    "fp8 in pages": Size(2, 2, 2, 96, 32, True),
    "ragged": Size(3, 4, 2, 50, 16, False, decode.lengths(3, 50)),
}


@pytest.fixture
def no_clock(monkeypatch):
    """No clock, by which a call takes 1 us, and no graphs: what would be captured is called once."""
    monkeypatch.setattr(harness, "side_by_side", lambda runs: dict.fromkeys(runs, decode.REPLAYS / 1000))

    def captured(run, times):
        run()
        return type("Graph", (), {"replay": lambda self: None})()

    monkeypatch.setattr(harness, "captured", captured)


@pytest.mark.parametrize("case", SIZES)
def test_a_row_says_what_was_timed(case, no_clock):
    torch.manual_seed(0)
    size = SIZES[case]
    row = decode.measure(case, size, 4000, device="cpu", cold=0)
    assert set(row["us"]) == set(decode.peers(size)) and ("sdpa" in row["us"]) == (case == "contiguous")
    scales = 8 if size.fp8 else 0
    assert row["bytes"] == size.tokens * size.H_k * (2 * decode.D * (1 if size.fp8 else 2) + scales)
    assert row["share"]["ours"] == pytest.approx(row["bytes"] / 4e6, abs=1e-3)
    assert [kernel["kernel"] for kernel in row["kernels"]] == ["_partial", "_merge"]


@pytest.mark.parametrize("case", SIZES)
def test_a_wrong_result_is_not_timed(case):
    torch.manual_seed(0)
    problem = decode.Problem(SIZES[case], "cpu", cold=0)
    problem.verify("ours", decode.ours)
    with pytest.raises(AssertionError, match="O of half at"):
        problem.verify("half", lambda Q, **cache: decode.ours(Q, **cache) / 2)


def test_more_caches_than_the_L2_cache_holds():
    size = SIZES["contiguous"]
    problem = decode.Problem(size, "cpu", cold=3 * size.bytes)
    assert len(problem.caches) == 3 and len({cache["K"].data_ptr() for cache in problem.caches}) == 3


def test_a_prompt_is_shared_by_all(no_clock):
    torch.manual_seed(0)
    row = decode.with_a_prompt(B=3, prompt=64, own=20, page=16, device="cpu", cold=0)
    assert set(row["us"]) == {"pages of their own", "read by each", "read once"}


def test_lengths_are_ragged_and_add_up():
    each = decode.lengths(16, 8192)
    assert sum(each) == 16 * 8192 and min(each) > 0 and max(each) > 2 * 8192


def test_memory_is_counted():
    rows = {row["case"]: row for row in decode.memory(B=50, N=300)}
    per_token = {name: row["bytes_per_token"] for name, row in rows.items() if "bytes_per_token" in row}
    assert per_token["MHA"] == 4 * per_token["GQA"] == 32 * per_token["MQA"]
    assert per_token["GQA in fp8"] == per_token["GQA"] // 2 + 8 * 2 * 4
    assert rows["pages of 16"]["empty"] < rows["pages of 256"]["empty"] < rows["longest reserved"]["empty"]
