"""The stand-in for FlashInfer, which its own tests run against, and the rule that selects their cases."""

import itertools
import json
import math
import sys
from pathlib import Path
from unittest import mock

import pytest
import torch

from flashlib import masks, torch_ref
from flashlib import sink as sinks
from flashlib.kernels import DEVICE
from tools import dao_cases, flashinfer_cases, flashinfer_stand_in, flashinfer_tests
from tools.flashinfer_stand_in import batch, cascade, merging, options, pages, single
from tools.flashinfer_stand_in.options import NotTaken

H, H_K, D, PAGE = 4, 2, 16, 4
LENGTHS = 5, 0, 9
INDPTR, INDICES, LAST = [0, 2, 2, 5], [6, 1, 3, 0, 5], [1, 0, 1]  # of pages: those of a sequence are in no order


def rand(*shape):
    return torch.randn(*shape, device=DEVICE)


def ints(*values):
    return torch.tensor(values, dtype=torch.int32, device=DEVICE)


def reference(q, k, v, **given):
    """Return O, (N_q, H, d), and lse to base 2, (N_q, H), by torch, for one sequence."""
    Q, K, V = (X.transpose(0, 1)[None] for X in (q, k, v))
    O, lse = torch_ref.attention(Q, K, V, **given)
    return O[0].transpose(0, 1), lse[0].T / math.log(2)


def same(found, expected):
    for X, Y in zip(found, expected, strict=True):
        torch.testing.assert_close(X, Y, rtol=1e-4, atol=1e-4)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def cache():
    """Pages, NHD, and the keys and values of each sequence, which are in the listed ones."""
    K, V = rand(8, PAGE, H_K, D), rand(8, PAGE, H_K, D)
    tokens = []
    for (start, end), n in zip(itertools.pairwise(INDPTR), LENGTHS, strict=True):
        tokens.append([X[INDICES[start:end]].flatten(0, 1)[:n] for X in (K, V)])
    return K, V, tokens


def planned(wrapper, *before, **given):
    wrapper.plan(*before, ints(*INDPTR), ints(*INDICES), ints(*LAST), H, H_K, D, PAGE, **given)
    return wrapper


def laid_out(K, V, kv_layout, together):
    """Return a cache as FlashInfer takes it."""
    K, V = (X if kv_layout == "NHD" else X.transpose(1, 2).contiguous() for X in (K, V))
    return torch.stack([K, V], 1) if together else (K, V)


@pytest.mark.parametrize("kv_layout", ["NHD", "HND"])
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("use_tensor_cores", [False, True])
def test_a_step_of_decoding_equals_torch(cache, kv_layout, together, use_tensor_cores):
    K, V, tokens = cache
    wrapper = batch.BatchDecodeWithPagedKVCacheWrapper(rand(1), kv_layout, use_tensor_cores=use_tensor_cores)
    q = rand(3, H, D)
    O, lse = planned(wrapper, window_left=6, logits_soft_cap=2.0).run_return_lse(
        q, laid_out(K, V, kv_layout, together)
    )
    mask = masks.softcap(2.0) & masks.window(6, 0)
    for b in (0, 2):
        same([O[b : b + 1], lse[b : b + 1]], reference(q[b : b + 1], *tokens[b], mask=mask))
    assert not O[1].any() and (lse[1] == -torch.inf).all()


@pytest.mark.parametrize("kv_layout", ["NHD", "HND"])
@pytest.mark.parametrize("causal", [False, True])
def test_prompts_equal_torch(cache, kv_layout, causal):
    K, V, tokens = cache
    q, rows = rand(6, H, D), [0, 2, 3, 6]
    paged = planned(batch.BatchPrefillWithPagedKVCacheWrapper(rand(1), kv_layout), ints(*rows), causal=causal)
    ragged = batch.BatchPrefillWithRaggedKVCacheWrapper(rand(1))
    ragged.plan(ints(*rows), ints(0, 5, 5, 14), H, H_K, D, causal=causal)
    k, v = (torch.cat(of) for of in zip(*tokens, strict=True))
    out = torch.empty_like(q)
    found = paged.run(q, laid_out(K, V, kv_layout, True), return_lse=True, out=out)
    assert found[0] is out
    same(ragged.run_return_lse(q, k, v), found)
    for b in (0, 2):
        part = slice(rows[b], rows[b + 1])
        same([X[part] for X in found], reference(q[part], *tokens[b], causal=causal))


def test_a_sink_is_a_score_without_a_key(cache):
    K, V, tokens = cache
    q, sink = rand(3, H, D), rand(H)
    wrapper = planned(batch.BatchAttentionWithAttentionSinkWrapper(rand(1)), ints(0, 1, 2, 3))
    O, lse = wrapper.run_return_lse(q, (K, V), sink, D**-0.5)
    Q, K, V = (X.transpose(0, 1)[None] for X in (q[2:], *tokens[2]))
    expected = sinks.add(torch_ref.attention(Q, K, V), sink)
    same([O[2], lse[2]], [expected.O[0, :, 0], expected.lse[0, :, 0] / math.log(2)])


@pytest.mark.parametrize("n_q", [1, 7])
@pytest.mark.parametrize("heads", [4, 6])
def test_alibi_rises_with_the_key(n_q, heads):
    q, k, v = rand(n_q, heads, D), rand(5, heads, D), rand(5, heads, D)
    O = single.single_prefill_with_kv_cache(q, k, v, pos_encoding_mode="ALIBI")
    slopes = {4: [2**-2, 2**-4, 2**-6, 2**-8], 6: [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]}[heads]
    scores = torch.einsum("qhd,khd->hqk", q, k) * D**-0.5
    scores += torch.tensor(slopes, device=DEVICE)[:, None, None] * torch.arange(5, device=DEVICE)
    expected = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v)
    same([O], [expected])
    if n_q == 1:
        same([single.single_decode_with_kv_cache(q[0], k, v, pos_encoding_mode="ALIBI")], [expected[0]])


def test_a_mask_of_bools_replaces_causal():
    q, k, v = rand(6, H, D), rand(6, H_K, D), rand(6, H_K, D)
    seen = torch.ones(6, 6, dtype=torch.bool, device=DEVICE).triu()
    found = single.single_prefill_with_kv_cache_return_lse(q, k, v, causal=True, custom_mask=seen)
    same(found, reference(q, k, v, mask=masks.dense(seen)))


def test_merged_states_are_those_of_all_keys():
    q, k, v = rand(3, H, D), rand(12, H_K, D), rand(12, H_K, D)
    parts = [reference(q, k[part], v[part]) for part in (slice(0, 3), slice(3, 4), slice(4, 12))]
    a, b, c = parts
    expected = reference(q, k, v)
    same(merging.merge_state(*merging.merge_state(*a, *b), *c), expected)
    same(merging.merge_states(*(torch.stack(of, 1) for of in zip(*parts, strict=True))), expected)
    O, lse = (X.clone() for X in a)
    chosen = torch.tensor([True, False, True], device=DEVICE)
    merging.merge_state_in_place(O, lse, *merging.merge_state(*b, *c), mask=chosen)
    same([O[chosen], lse[chosen]], [X[chosen] for X in expected])
    same([O[~chosen], lse[~chosen]], [X[~chosen] for X in a])


def test_keys_that_sequences_share_are_merged_with_their_own(cache):
    K, V, tokens = cache
    q, k, v = rand(3, H, D), rand(4, H_K, D), rand(4, H_K, D)
    wrapper = cascade.BatchDecodeWithSharedPrefixPagedKVCacheWrapper(rand(1))
    wrapper.begin_forward(ints(*INDPTR), ints(*INDICES), ints(*LAST), H, H_K, D, PAGE)
    two = wrapper.forward(q, k, v, (K, V))
    levels = cascade.MultiLevelCascadeAttentionWrapper(2, rand(1))
    K, V = torch.cat([K, k[None]]), torch.cat([V, v[None]])
    levels.plan(
        [ints(0, 3), ints(0, 1, 2, 3)], [ints(0, 1), ints(*INDPTR)], [ints(8), ints(*INDICES)],
        [ints(4), ints(*LAST)], H, H_K, D, PAGE,
    )  # fmt: skip
    for b, (k_own, v_own) in enumerate(tokens):
        expected, _ = reference(q[b : b + 1], torch.cat([k, k_own]), torch.cat([v, v_own]))
        same([two[b : b + 1], levels.run(q, (K, V))[b : b + 1]], [expected, expected])


@pytest.mark.parametrize("kv_layout", ["NHD", "HND"])
def test_new_tokens_are_the_last_of_their_sequences(cache, kv_layout):
    K, V, tokens = cache
    paged = laid_out(K, V, kv_layout, True)
    k, v = rand(5, H_K, D), rand(5, H_K, D)
    lengths = pages.get_seq_lens(ints(*INDPTR), ints(*LAST), PAGE)
    assert lengths.tolist() == list(LENGTHS)
    sequences, positions = pages.get_batch_indices_positions(ints(0, 1, 1, 4), lengths, 5)
    assert sequences.tolist() == [0, 2, 2, 2, -1] and positions.tolist()[:4] == [4, 6, 7, 8]
    where = ints(*INDICES), ints(*INDPTR), ints(*LAST)
    pages.append_paged_kv_cache(k, v, sequences, positions, paged, *where, kv_layout)
    for new, X in zip((k, v), (K, V), strict=True):  # pages 1 and 3, 0 and 5 of token 4, and of 6 to 8
        X[1, 0] = new[0]
        X[0, 2:], X[5, 0] = new[1:3], new[3]
    assert torch.equal(paged, laid_out(K, V, kv_layout, True))


def refusals():
    q, k = rand(2, H, D), rand(3, H_K, D)
    decode, prefill = batch.BatchDecodeWithPagedKVCacheWrapper, batch.BatchPrefillWithRaggedKVCacheWrapper
    ragged, odd = prefill(rand(1)), planned(decode(rand(1)))
    wide = rand(1, H, 512), rand(3, H_K, 512), rand(3, H_K, 512)
    eight = k.to(torch.float8_e4m3fn)
    return {
        "ROPE_LLAMA": lambda: single.single_decode_with_kv_cache(q[0], k, k, pos_encoding_mode="ROPE_LLAMA"),
        "head_dim above 256": lambda: single.single_prefill_with_kv_cache(*wide),
        "8-bit keys": lambda: single.single_decode_with_kv_cache(q[0], eight, eight),
        "packed_custom_mask": lambda: single.single_prefill_with_kv_cache(q, k, k, packed_custom_mask=q),
        "k_scale": lambda: odd.run(q, (rand(8, PAGE, H_K, D),) * 2, k_scale=2.0),
        "page_size": lambda: odd.run(q, (rand(8, 5, H_K, D),) * 2),
        "custom_mask": lambda: ragged.plan(ints(0, 2), ints(0, 3), H, H_K, D, custom_mask=q),
        "use_cuda_graph": lambda: decode(rand(1), use_cuda_graph=True),
        "jit_args": lambda: prefill(rand(1), jit_args=["uri", *range(10), "OwnVariant"]),
    }


@pytest.mark.parametrize("option", list(refusals()))
def test_an_option_that_is_not_taken_is_named(option):
    with pytest.raises(NotTaken, match=option):
        refusals()[option]()


def test_a_function_that_is_missing_is_named_when_it_is_called():
    with mock.patch.dict(sys.modules):
        flashinfer_stand_in.stand_in()
        import flashinfer
        from flashinfer.decode import single_decode_with_kv_cache

        assert single_decode_with_kv_cache is single.single_decode_with_kv_cache
        with pytest.raises(NotTaken, match="flashinfer.rmsnorm"):
            flashinfer.rmsnorm(rand(2))


def raises(error):
    def test():
        raise error

    return test


@pytest.mark.parametrize(
    "error, became",
    [
        (AssertionError("not close"), "failed"),
        (ValueError("a kernel refuses"), "failed"),
        (NotTaken("an option"), "not taken"),
        (pytest.skip.Exception("a condition"), "skipped"),
    ],
)
def test_only_a_case_whose_assertions_hold_passes(error, became):
    assert flashinfer_tests.outcome(raises(error), {})[0] == became
    assert flashinfer_tests.outcome(lambda: None, {}) == ("passed", "")


def test_what_is_not_taken_is_counted_by_its_reason():
    results = flashinfer_tests.Results([("page", "test", {})] * 5)
    for became, why in (("passed", ""), ("failed", "x"), ("not taken", "head_dim"), ("not taken", "head_dim")):
        results.add("page", "test", {}, became, why, 1.0)
    (row,) = results.rows()
    assert row["not_taken"] == {"head_dim": 2} and row["passed"] == row["failed"] == row["left"] == 1


@pytest.mark.parametrize("batch_size", [1, 3, 128])
@pytest.mark.parametrize("kv_len, qo_len", [(9, 1), (64, 80), (512, 17), (16384, 577)])
@pytest.mark.parametrize("head_dim", [64, 128, 512])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("pos_encoding_mode", ["NONE", "ROPE_LLAMA"])
def given_as_a_test(**case):
    raise AssertionError("it is not run")


def test_each_pair_of_values_that_are_taken_is_chosen_and_each_refused_value_once():
    given = dao_cases.parameters(given_as_a_test)
    taken = [
        case
        for case in map(given.called, given.cases())
        if flashinfer_cases.fits(case) and flashinfer_cases.size(case) <= flashinfer_cases.MOST
        if not flashinfer_cases.refused(case)
    ]
    found = flashinfer_cases.chosen("a test", given_as_a_test)
    assert found == flashinfer_cases.chosen("a test", given_as_a_test)
    refused = [value for case in found for value in flashinfer_cases.refused(case)]
    assert sorted(refused) == [("head_dim", 512), ("pos_encoding_mode", "ROPE_LLAMA")]

    def pairs(cases):
        return set().union(*(itertools.combinations(sorted(case.items()), 2) for case in cases))

    assert pairs(taken) <= pairs(found) and len(found) <= flashinfer_cases.SHARE + len(refused)
    assert len({tuple(case.items()) for case in found}) == len(found)


def test_tests_of_something_else_are_left_out_with_a_reason():
    assert flashinfer_cases.left_out("test_batch_decode_with_paged_kv_cache_nvfp4") == "NVFP4 keys and values"
    assert flashinfer_cases.left_out("test_batch_ragged_prefill")
    assert flashinfer_cases.left_out("test_batch_ragged_prefill_packed_input") is None


def test_options_without_an_effect_are_taken():
    assert options.options_of(backend="fa3", enable_pdl=True, custom_mask=None) == options.Options()


def test_options_that_promise_the_same_bits_in_every_batch_are_refused():
    for name, value in (("fixed_split_size", 2048), ("disable_split_kv", True)):
        with pytest.raises(NotTaken, match=name):
            options.options_of(**{name: value})
    assert options.options_of(fixed_split_size=None, disable_split_kv=False) == options.Options()
    assert flashinfer_cases.left_out("test_batch_decode_tensor_cores_with_fast_plan")
    assert flashinfer_cases.left_out("test_batch_decode_with_paged_kv_cache_with_fast_plan") is None


def test_the_record_has_every_file_and_no_failure():
    record = json.loads(Path(__file__).with_name("flashinfer_tests.json").read_text(encoding="utf-8"))
    rows = record["rows"]
    assert [row["file"] for row in rows] == list(flashinfer_tests.TESTS)
    assert record["commit"] == flashinfer_tests.COMMIT and sum(row["passed"] for row in rows) > 1100
    for row in rows:
        assert not row["failed"] and not row["left"] and row["passed"]
        assert row["cases"] == row["passed"] + row["skipped"] + sum(row["not_taken"].values())
