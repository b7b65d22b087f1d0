"""All forms of a variant agree: our mask, FlexAttention's functions and SDPA's additive mask."""

import numpy as np
import pytest
import torch

from flashlib import masks, torch_ref
from flashlib.bench import cases
from flashlib.bench.common import peers

N, H = 96, 2


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(cases, "BLOCK", 16)
    monkeypatch.setattr(cases, "lengths", lambda N: np.array([1, 30, 40, N - 71]))


@pytest.mark.parametrize("case", [*cases.CASES, cases.window(7)], ids=lambda case: case.name)
def test_the_three_forms_of_a_variant_are_one(case, small):
    torch.manual_seed(0)
    Q, K, V = 20 * torch.randn(3, 1, H, N, 8, dtype=torch.float64)  # large enough that a cap bends
    ours = torch_ref.attention(Q, K, V, mask=case.mask(N, H)).O
    b, h, q, k = torch.meshgrid(*map(torch.arange, (1, H, N, N)), indexing="ij")
    S = Q @ K.mT * Q.shape[-1] ** -0.5
    scores = S if case.flex_score is None else case.flex_score(N, H, "cpu")(S, b, h, q, k)
    flex = scores.masked_fill(~case.flex_mask(N, H, "cpu")(b, h, q, k).expand_as(S), -torch.inf).softmax(-1) @ V
    torch.testing.assert_close(flex, ours, atol=1e-5, rtol=0)  # slopes are in fp32
    if case.numbers:
        numbers = case.numbers(N, H, "cpu")
        assert numbers.dtype == torch.bfloat16
        torch.testing.assert_close(
            (S + numbers).softmax(-1) @ V, ours, atol=0.5 if "ALiBi" in case.name else 1e-5, rtol=0
        )


def test_documents_and_blocks_have_about_the_stated_sizes():
    each = cases.lengths(10**6)
    of_mean = 1000 * (np.e - 1) ** 0.5 / len(each) ** 0.5  # its standard deviation, if sigma is 1
    assert each.sum() == 10**6 and abs(each[:-1].mean() - 1000) < 5 * of_mean
    assert abs(np.log(each[:-1]).std() - 1) < 5 / (2 * len(each)) ** 0.5
    for share in (0.1, 0.5):
        table = cases.table(64 * cases.BLOCK, share)
        assert table.shape == (64, 64) and table.diagonal().all()
        assert abs(table[~np.eye(64, dtype=bool)].mean() - share) < 0.02
    assert [case.mask(1000, 1).keys(masks.Place(1000, 1000))[0][-1] for case in map(cases.window, (1, 7))] == [
        999,
        993,
    ]


@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.parametrize("causal", [False, True])
def test_flex_attention_is_attention(causal, monkeypatch):
    monkeypatch.setattr(peers, "compiled_flex", lambda: peers.flex_attention)
    peers._causal_blocks.cache_clear()
    torch.manual_seed(0)
    Q, (K, V) = torch.randn(2, 4, 37, 16), torch.randn(2, 2, 2, 37, 16)
    exact = torch_ref.attention(Q, K.repeat_interleave(2, 1), V.repeat_interleave(2, 1), causal=causal).O
    for peer in (peers.flex, peers.chosen_sdpa):
        torch.testing.assert_close(peer(Q, K, V, causal), exact, atol=1e-5, rtol=0)
    torch.testing.assert_close(peers.flex(K, K, V, causal), torch_ref.attention(K, K, V, causal=causal).O)
