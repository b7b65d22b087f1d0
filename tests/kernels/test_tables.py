"""Numbers of pages and sequences in tables on the CPU: checked where keys are read, and not used elsewhere."""

import numpy as np
import pytest
import torch

from flashlib import kernels, masks
from flashlib.interop import flash_attn
from flashlib.interop.vllm import paged_attention as vllm_attention
from flashlib.kernels import append, decode, varlen
from flashlib.kernels.ablations import decode as in_one
from tests.tiers import amounts

pytestmark = pytest.mark.skipif(not kernels.INTERPRETED, reason="kernels are compiled here")
PAGES, PAGE, MOST, H_k, d = 7, 16, 4, 2, 16
NO_PAGES = -1, PAGES, -PAGES - 1, 1000, 2**31 - 1, -(2**31)
WORDS = r"the table has {} for page {} of sequence {}, and the cache has 7 pages: pass numbers from 0 to 6"
CHOSEN = r"the table has {} for sequence {}, and the cache has 7 sequences: pass numbers from 0 to 6"


def int32(*numbers):
    return torch.tensor(numbers, dtype=torch.int32)


def cache(pages=PAGES, page=PAGE):
    """Return K and V in the middle of NaN."""
    return torch.full((2, pages + 4, H_k, page, d), torch.nan)[:, 2:-2].copy_(torch.randn(2, pages, H_k, page, d))


OPTIONS = "", "causal", "window", "padding", "shared"


def drawn(rng, option, B=3):
    """Return queries, a cache in pages, options of `decode.attention`, and which entries of the table are read."""
    lengths = rng.integers(-5, PAGE * MOST + 20, B)
    N_q = int(rng.integers(1, 4))
    options, first = {}, np.zeros(B, int)
    length = lengths.clip(0, PAGE * MOST)
    if option == "window":
        left = int(rng.integers(0, 30))
        options["mask"], first = masks.window(left, 0), (length - N_q - left).clip(0)
    elif option == "padding":
        first = rng.integers(-3, 40, B)
        options["padding"] = torch.from_numpy(first).int()
    elif option == "causal":
        options["causal"] = True
    keys = np.arange(PAGE * MOST)
    read = (first[:, None] <= keys) & (keys < length[:, None])
    if option == "shared":
        options["shared"] = shared = int(rng.integers(1, 40))
        read &= keys >= shared
        read[0] |= keys < shared
    used = torch.from_numpy(read.reshape(B, MOST, PAGE).any(-1))
    table = torch.from_numpy(rng.integers(0, PAGES, (B, MOST))).int()
    given = torch.randn(B, 4, N_q, d), *cache(), torch.from_numpy(lengths).int(), table
    return given, options, used


@pytest.mark.parametrize("amount", ["few", "all"])
@pytest.mark.parametrize("option", OPTIONS)
def test_decoding_reads_only_pages_that_exist(option, amount, rng):
    torch.manual_seed(0)
    for _ in range({"few": 1, "all": 6}[amount]):
        (*given, table), options, used = drawn(rng, option)
        O, lse = decode.attention(*given, table, **options)
        assert O.isfinite().all()
        other = torch.where(used, table, torch.from_numpy(rng.choice(NO_PAGES, table.shape)).int())
        again = decode.attention(*given, other, **options)
        assert torch.equal(again.O, O) and torch.equal(again.lse, lse)
        for b, column in used.nonzero().tolist():
            wrong = table.clone()
            wrong[b, column] = number = int(rng.choice(NO_PAGES))
            with pytest.raises(ValueError, match=WORDS.format(number, column, b)):
                decode.attention(*given, wrong, **options)


@pytest.mark.parametrize("amount, number", amounts(NO_PAGES, few=[-1, PAGES, -(2**31)]))
def test_a_sequence_of_a_contiguous_cache_must_exist_where_keys_are_read(amount, number):
    Q, K, V = torch.randn(3, 4, 1, d), *cache()
    table, lengths = int32(4, number, 0), int32(9, 0, 16)
    O = decode.attention(Q, K, V, lengths, table).O
    assert (
        torch.equal(O[[0, 2]], decode.attention(Q[[0, 2]], K, V, lengths[[0, 2]], table[[0, 2]]).O)
        and not O[1].any()
    )
    for some in (int32(9, 1, 16), None):
        with pytest.raises(ValueError, match=CHOSEN.format(number, 1)):
            decode.attention(Q, K, V, some, table)
        with pytest.raises(ValueError, match=CHOSEN.format(number, 1)):
            in_one.attention(Q, K, V, some, table)


@pytest.mark.parametrize("amount, number", amounts(NO_PAGES, few=[-1, PAGES, -(2**31)]))
def test_keys_are_written_only_to_sequences_that_exist(amount, number):
    K, V = torch.randn(2, 2, H_k, 3, d)
    K_cache, V_cache = cache()
    before, table = K_cache.clone(), int32(5, number)
    for after in (int32(8, 2), int32(8, 18), int32(20, 17)):
        with pytest.raises(ValueError, match=CHOSEN.format(number, 1)):
            append.append(K, V, K_cache, V_cache, after, table)
        assert torch.equal(K_cache, before), "it is refused before any work"
    append.append(K, V, K_cache, V_cache, int32(8, 0), table)
    append.append(K, V, K_cache, V_cache, int32(8, 19), table)  # no sequence would have a key to write
    assert torch.equal(K_cache[5, :, 5:8], K[0]) and torch.equal(K_cache[:5], before[:5])


@pytest.mark.parametrize("amount, number", amounts(NO_PAGES, few=[-1, PAGES, -(2**31)]))
def test_tokens_are_gathered_only_from_pages_that_exist(amount, number):
    X, offsets = cache()[0], int32(0, 20, 20, 36)
    table = torch.tensor([[3, 0, number], [number] * 3, [1, number, 2]]).int()
    with pytest.raises(ValueError, match=WORDS.format(number, 1, 2)):
        varlen.gathered(X, torch.cat([table[:, :2], table[:, :1]], 1), int32(0, 20, 20, 40), 40)
    found = varlen.gathered(X, table, offsets, 36)
    expected = torch.cat([X[3], X[0][:, :4], X[1]], 1).transpose(0, 1)
    assert torch.equal(found, expected)
    with pytest.raises(ValueError, match="a sequence has 49 tokens, and the table has room for 48"):
        varlen.gathered(X, table.clamp(0, 6), int32(0, 49, 49, 49), 49)
    with pytest.raises(ValueError, match="cu_seqlens falls from 20 to 3"):
        varlen.gathered(X, table.clamp(0, 6), int32(0, 20, 3, 36), 36)


@pytest.mark.parametrize("amount, number", amounts(NO_PAGES, few=[-1, PAGES, -(2**31)]))
@pytest.mark.parametrize("new", [0, 2])
def test_flash_attn_refuses_what_is_not_in_the_cache_before_anything_is_written(amount, number, new):
    q, k_cache, v_cache = torch.randn(2, 1, 4, d), *(X.transpose(1, 2) for X in cache())
    call = {"k": torch.randn(2, new, H_k, d), "v": torch.randn(2, new, H_k, d)} if new else {}
    call |= {"cache_seqlens": int32(3, 9)}
    before, table = k_cache.clone(), torch.tensor([[0, number], [number, 2]]).int()
    for options, words in (
        ({"cache_batch_idx": int32(0, number)}, CHOSEN.format(number, 1)),
        ({"block_table": table}, WORDS.format(number, 0, 1)),
        ({"block_table": table, "cache_leftpad": int32(0, 5)}, WORDS.format(number, 0, 1)),
    ):
        with pytest.raises(ValueError, match=words):
            flash_attn.flash_attn_with_kvcache(q, k_cache, v_cache, **call, **options)
        assert torch.equal(k_cache, before)
    flash_attn.flash_attn_with_kvcache(
        q, k_cache, v_cache, block_table=torch.stack([table[0], table[1].flip(0)]), **call
    )
    with pytest.raises(ValueError, match=WORDS.format(number, 1, 0)):
        flash_attn.flash_attn_varlen_func(
            q.flatten(0, 1), k_cache, v_cache, int32(0, 1, 2), int32(0, 17, 20), 1, 17, block_table=table
        )


@pytest.mark.parametrize("number", [-1, PAGES, 1000])
def test_pages_of_vllm_must_exist_where_they_are_read(number):
    K, V = cache()
    lengths, starts = int32(30, 20, 12), int32(0, 1, 18, 18)  # a token, a prompt, and nothing new
    query, output = torch.randn(18, 4, d), torch.zeros(18, 4, d)
    table = torch.tensor([[number, 1, number], [2, 3, number], [number] * 3]).int()
    asked = vllm_attention.AttentionOptions(0.3, left=5)
    vllm_attention.attend(query, K, V, output, starts, lengths, table, asked)
    assert output.isfinite().all() and output.any()
    for b, column in ((0, 1), (1, 0), (1, 1)):
        wrong, output = table.clone(), torch.zeros(18, 4, d)
        wrong[b, column] = number
        with pytest.raises(ValueError, match=WORDS.format(number, column, b)):
            vllm_attention.attend(query, K, V, output, starts, lengths, wrong, asked)
        assert not output.any()
    with pytest.raises(ValueError, match="slots has 112, and the pages have 112: pass numbers below 112"):
        vllm_attention.write(*torch.randn(2, 3, H_k, d), K, V, torch.tensor([3, 112, -1]))
