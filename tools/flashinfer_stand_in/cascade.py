"""Attention over keys that sequences share and keys of their own, merged: the wrappers of a cascade."""

import functools
from collections.abc import Sequence
from typing import Any

import torch

from tools.flashinfer_stand_in.batch import (
    BatchDecodeWithPagedKVCacheWrapper,
    BatchPrefillWithPagedKVCacheWrapper,
)
from tools.flashinfer_stand_in.layouts import Cache
from tools.flashinfer_stand_in.merging import merge_state
from tools.flashinfer_stand_in.single import single_prefill_with_kv_cache_return_lse


class MultiLevelCascadeAttentionWrapper:
    """The keys of a level are shared by those sequences that the level's qo_indptr joins."""

    def __init__(self, num_levels: int, float_workspace_buffer: torch.Tensor, kv_layout: str = "NHD") -> None:
        of_level = functools.partial(BatchPrefillWithPagedKVCacheWrapper, float_workspace_buffer, kv_layout)
        self.levels = [of_level() for _ in range(num_levels)]

    def plan(
        self, qo_indptr_arr: Sequence, paged_kv_indptr_arr: Sequence, paged_kv_indices_arr: Sequence,
        paged_kv_last_page_len: Sequence, *sizes: int, causal: bool = False, **given: Any,
    ) -> None:  # fmt: skip
        of_levels = qo_indptr_arr, paged_kv_indptr_arr, paged_kv_indices_arr, paged_kv_last_page_len
        for level, *tensors in zip(self.levels, *of_levels, strict=True):
            last = level is self.levels[-1]  # the keys before it come before all queries
            level.plan(*tensors, *sizes, causal=causal and last, **given)

    def run(self, q: torch.Tensor, paged_kv_cache: Cache) -> torch.Tensor:
        states = [level.run_return_lse(q, paged_kv_cache) for level in self.levels]
        return functools.reduce(lambda a, b: merge_state(*a, *b), states)[0]


class WithSharedPrefix:
    """Keys that all sequences share as a tensor, and a wrapper, `of_each`, for the keys of each."""

    of_each: type

    def __init__(self, float_workspace_buffer: torch.Tensor, kv_layout: str = "NHD") -> None:
        self.unique, self.kv_layout = self.of_each(float_workspace_buffer, kv_layout), kv_layout

    def begin_forward(self, *args: Any, **given: Any) -> None:
        self.plan = functools.partial(self.unique.plan, *args, **given)

    def forward(
        self, q: torch.Tensor, k_shared: torch.Tensor, v_shared: torch.Tensor, unique_kv_cache: Cache, **given: Any
    ) -> torch.Tensor:
        self.plan(**given)
        shared = single_prefill_with_kv_cache_return_lse(q, k_shared, v_shared, kv_layout=self.kv_layout)
        return merge_state(*shared, *self.unique.run_return_lse(q, unique_kv_cache))[0]


class BatchDecodeWithSharedPrefixPagedKVCacheWrapper(WithSharedPrefix):
    of_each = BatchDecodeWithPagedKVCacheWrapper


class BatchPrefillWithSharedPrefixPagedKVCacheWrapper(WithSharedPrefix):
    of_each = BatchPrefillWithPagedKVCacheWrapper
