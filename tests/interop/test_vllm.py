"""What our backend does in vLLM, on pages made here; `make vllm` runs vLLM itself."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
from flashlib import kernels, masks, sink, torch_ref  # noqa: E402
from flashlib.interop import vllm  # noqa: E402
from flashlib.interop.vllm import paged_attention  # noqa: E402

H_q, H_k, d, PAGE = 6, 3, 16, 8
KINDS = {
    "plain": {},
    "all": {"causal": False},
    "window": {"left": 4},
    "window of both sides": {"left": 4, "causal": False},
    "cap and slopes": {"softcap": 3.0, "slopes": torch.linspace(0.1, 0.5, H_q)},
    "sink": {"sink": torch.linspace(-1, 1, H_q).to(kernels.DEVICE)},
}


@pytest.fixture(autouse=True)
def _where_kernels_run():
    with torch.device(kernels.DEVICE):
        yield


def drawn(lengths, new):
    """Return queries, keys and values of all tokens of each sequence, pages that they are in, and their table."""
    torch.manual_seed(0)
    need = [-(-n // PAGE) for n in lengths]
    order = torch.randperm(sum(need) + 3)  # with pages of nobody's
    table = torch.zeros(len(lengths), max(need) + 1, dtype=torch.int32)
    tokens, slots = [], []
    for b, n in enumerate(lengths):
        table[b, : need[b]] = order[sum(need[:b]) : sum(need[: b + 1])]
        tokens.append([torch.randn(n, h, d) for h in (H_q, H_k, H_k)])
        c = torch.arange(n)
        slots.append(table[b, c // PAGE].long() * PAGE + c % PAGE)
    K, V = torch.full((2, len(order), H_k, PAGE, d), torch.nan)
    for when in ("before", "now"):
        for b, n in enumerate(lengths):
            part = slice(0, n - new[b]) if when == "before" else slice(n - new[b], n)
            paged_attention.write(tokens[b][1][part], tokens[b][2][part], K, V, slots[b][part])
    return tokens, K, V, table


@pytest.mark.parametrize("shape", ["one axis", "two axes"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lengths, new", [([11, 30, 5], [1, 1, 1]), ([11, 23, 37], [3, 23, 16])])
def test_pages_are_written_and_attended_to(lengths, new, kind, shape):
    tokens, K, V, table = drawn(lengths, new)
    asked = paged_attention.AttentionOptions(0.3, **KINDS[kind])
    query = torch.cat([Q[n - m :] for (Q, _, _), n, m in zip(tokens, lengths, new, strict=True)])
    starts = torch.tensor([0, *torch.tensor(new).cumsum(0)], dtype=torch.int32)
    output = torch.full((len(query), H_q, d) if shape == "two axes" else (len(query), H_q * d), torch.nan)
    if asked.left:  # pages that nobody sees any more may be another's, or gone
        for b in (b for b, m in enumerate(new) if m <= paged_attention.FEW):
            table[b, : max(0, lengths[b] - new[b] - asked.left) // PAGE] = len(K)
    paged_attention.attend(query, K, V, output, starts, torch.tensor(lengths, dtype=torch.int32), table, asked)
    for b, (q, k, v) in enumerate(tokens):
        q, k, v = (X.double().transpose(0, 1)[None] for X in (q[-new[b] :], k, v))
        mask = masks.Mask()
        for part in (
            asked.softcap and masks.softcap(asked.softcap),
            asked.slopes is not None and masks.alibi(asked.slopes.tolist()),
            asked.left and masks.window(asked.left, 0 if asked.causal else asked.left),
        ):
            mask = mask & part if part else mask
        exact = torch_ref.attention(q, k, v, causal=asked.causal, mask=mask, scale=asked.scale)
        exact = exact if asked.sink is None else sink.add(exact, asked.sink.double())
        found = output[starts[b] : starts[b + 1]].view(-1, H_q, d).transpose(0, 1)
        torch.testing.assert_close(found, exact.O[0].float(), rtol=0, atol=2e-6)


def test_tokens_without_a_slot_are_not_written():
    K, V = torch.zeros(2, 2, H_k, PAGE, d)
    key, value = torch.ones(2, 5, H_k, d)
    paged_attention.write(key, value, K, V, torch.tensor([3, -1, 9, -1]))
    assert (K[0, :, 3] == 1).all() and (V[1, :, 1] == 1).all() and K.sum() == V.sum() == 2 * H_k * d


def test_other_devices_are_refused():
    with pytest.raises(ValueError, match="device is 'tpu'; accepted are"):
        vllm.register("tpu")
