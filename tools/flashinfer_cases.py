"""Which cases of FlashInfer's tests run: 1,200 out of 44,000, by a fixed rule.

Of the cases that fit and are not too large, some are chosen in which every pair of values of two parameters
occurs; random ones follow until a test has its share. A value that the stand-in refuses occurs in one case only.
"""

import itertools
import math
import random
import re
from collections.abc import Callable
from typing import Any

import torch

from tools import dao_cases

SHARE = 40  # cases of a test
LOOKED_AT = 500  # random cases of a test, among which to find some that have each pair
MOST = 2**28  # numbers in Q, K and V, or scores of a sequence
KERNEL = "head_dim", "dtype", "causal", "page_size", "num_kv_heads"  # each value compiles kernels
REFUSED = {
    "pos_encoding_mode": ["ROPE_LLAMA"],
    "head_dim": [512],
    "kv_dtype": [torch.float8_e4m3fn],
    "use_cuda_graph": [True],
}
WITHOUT = {  # tests of something else, by patterns of their names
    "nvfp4": "NVFP4 keys and values",
    "cuda_graph": "a plan that changes after a CUDA graph was captured",
    "custom_mask": "a custom mask for each sequence of a batch",
    "multi_item_scoring": "scoring of several items",
    "tensor_cores_with_fast_plan": "the same bits whatever the batch",  # with fixed_split_size or disable_split_kv
    "head_dim_512": "head_dim above 256",
    "rejects": "errors of FlashInfer",
    "deepseek": "different head_dim of keys and values",
    "test_batch_(ragged|paged)_prefill$": "two kernels for a batch of prompts: here there is one",
}


def left_out(name: str) -> str | None:
    """Return why no case of a test runs, or None."""
    return next((reason for pattern, reason in WITHOUT.items() if re.search(pattern, name)), None)


def chosen(name: str, test: Callable) -> list[dict[str, Any]]:
    """Return the cases of a test, as arguments."""
    given = dao_cases.parameters(test) if hasattr(test, "pytestmark") else dao_cases.Parameters([], [])
    # some values have no hash, their indices have
    indices = dao_cases.Parameters(given.names, [[*range(len(of))] for of in given.values])
    rng = random.Random(name)

    def called(case):
        return given.called(tuple(of[k] for of, k in zip(given.values, case, strict=True)))

    cases = _drawn(indices, rng)
    cases = [case for case in cases if fits(called(case)) and size(called(case)) <= MOST]
    taken = [case for case in cases if not refused(called(case))]
    found = dao_cases.covering(taken[:LOOKED_AT]) if given.names and taken else taken
    others = (case for case in taken if case not in set(found))
    found += itertools.islice(others, max(SHARE - len(found), 0))
    return [called(case) for case in [*found, *_one_of_each(cases, called)]]


def fits(case: dict) -> bool:
    """Return whether a test runs this case, and does not skip it."""
    q, kv = lengths(case)
    heads = case.get("num_qo_heads", 1), case.get("num_kv_heads", 1)
    return not (case.get("causal") and q > kv) and ("num_qo_heads" not in case or heads[0] % heads[1] == 0)


def refused(case: dict) -> list[tuple[str, Any]]:
    """Return the parameters of a case that the stand-in refuses."""
    return [(name, value) for name, value in case.items() if value in REFUSED.get(name, [])]


def size(case: dict) -> int:
    """Return about how many numbers a case has in its largest tensors."""
    q, kv = lengths(case)
    heads = max(case.get(name, 1) for name in ("num_heads", "num_qo_heads", "num_kv_heads"))
    return heads * max(case.get("batch_size", 1) * (q + kv) * case.get("head_dim", 128), q * kv)


def lengths(case):
    """Return how many queries and keys a sequence has."""
    of_all = case.get("seq_len", 1)
    q = case.get("qo_len", case.get("q_len", case.get("chunk_size", of_all)))
    shared = case.get("shared_kv_len", 0) + case.get("unique_kv_len", 0)
    past = case.get("historical_len", case.get("initial_seq_len"))
    return q, case.get("kv_len", shared or (of_all if past is None else past + q))


def _drawn(indices, rng):
    """Return all cases in random order, or many random ones if there are too many."""
    if math.prod(map(len, indices.values)) > dao_cases.DRAWN:
        return list(dict.fromkeys(tuple(map(rng.choice, indices.values)) for _ in range(dao_cases.DRAWN)))
    cases = list(indices.cases())
    return rng.sample(cases, len(cases))


def _one_of_each(cases, called):
    """Return a case for each value that is refused, the smallest with nothing else that is."""
    found = {}
    for case in sorted(cases, key=lambda case: size(called(case))):
        values = refused(called(case))
        if len(values) == 1:
            found.setdefault(str(values), case)
    return list(found.values())
