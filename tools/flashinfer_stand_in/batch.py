"""Attention of several sequences: the wrappers, which are told the sizes by plan() and compute in run()."""

from typing import Any

import torch

from flashlib.kernels import decode, varlen
from flashlib.types import Attention
from tools.flashinfer_stand_in.layouts import Cache, Results, by_head, pages_of, results, with_sink
from tools.flashinfer_stand_in.options import NotTaken, check_page, check_tensors, options_of, slopes_of
from tools.flashinfer_stand_in.pages import get_seq_lens, table_of

SINK = "AttentionSink"  # the only variant of FlashInfer's kernels, jit_args[11], that ours have


class Wrapper:
    """What the wrappers have in common. use_tensor_cores: decoding is done by the kernel of prefill."""

    def __init__(
        self, float_workspace_buffer: torch.Tensor, kv_layout: str = "NHD", use_cuda_graph: bool = False,
        use_tensor_cores: bool = False, *, jit_args: Any = None, **_: Any,
    ) -> None:  # fmt: skip
        if use_cuda_graph:
            raise NotTaken("use_cuda_graph")
        if jit_args is not None and jit_args[11] != SINK:
            raise NotTaken("jit_args")
        self.device, self.kv_layout = float_workspace_buffer.device, kv_layout
        self.use_tensor_cores, self.has_sink = use_tensor_cores, jit_args is not None

    def run_return_lse(self, *args: Any, **given: Any) -> Results:
        return self.run(*args, return_lse=True, **given)

    def run(self, *args: Any, **given: Any) -> Results:
        raise NotImplementedError

    def on_device(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        return [X.to(self.device) for X in tensors]

    def prefill(self, q, K, V, cu_k, sink_and_scale, buffers) -> Results:
        """Return the results for keys and values of a pack, (T_k, H_k, d). buffers: return_lse, out, lse."""
        options = self.options
        if options.alibi:
            raise NotTaken("pos_encoding_mode ALIBI in a batch of prompts")
        if bool(sink_and_scale) != self.has_sink:
            raise NotTaken("arguments of run() for kernels of one's own")
        sink, scale = sink_and_scale or (None, options.sm_scale)
        call = {"causal": options.causal, "mask": options.mask, "scale": scale}
        O, lse = varlen.attention(q, K, V, self.cu_q, cu_k, **call)
        return results(with_sink(O, lse, sink), **buffers)


class BatchPrefillWithRaggedKVCacheWrapper(Wrapper):
    def plan(
        self, qo_indptr: torch.Tensor, kv_indptr: torch.Tensor, num_qo_heads: int, num_kv_heads: int,
        head_dim_qk: int, **given: Any,
    ) -> None:  # fmt: skip
        self.cu_q, self.cu_k = self.on_device(qo_indptr, kv_indptr)
        self.options = options_of(**given)

    def run(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *args: Any, return_lse: bool = False,
        out: torch.Tensor | None = None, lse: torch.Tensor | None = None, **given: Any,
    ) -> Results:  # fmt: skip
        options_of(**given)
        check_tensors(q, k, v)
        K, V = (by_head(X, self.kv_layout).transpose(0, 1) for X in (k, v))
        return self.prefill(q, K, V, self.cu_k, args, {"return_lse": return_lse, "out": out, "lse": lse})


class Paged(Wrapper):
    """A wrapper whose keys and values are in pages."""

    def plan_pages(
        self, indptr: torch.Tensor, indices: torch.Tensor, last_page_len: torch.Tensor, page_size: int
    ) -> None:
        indptr, indices, last_page_len = self.on_device(indptr, indices, last_page_len)
        self.table, self.lengths = table_of(indptr, indices), get_seq_lens(indptr, last_page_len, page_size)

    def prefill_pages(self, q, cache, sink_and_scale, buffers) -> Results:
        """Return the results for keys and values that are first gathered from their pages."""
        cu_k = torch.nn.functional.pad(self.lengths.cumsum(0, dtype=torch.int32), (1, 0))
        tokens = int(cu_k[-1])
        K, V = (varlen.gathered(X, self.table, cu_k, tokens) for X in pages_of(cache, self.kv_layout))
        return self.prefill(q, K, V, cu_k, sink_and_scale, buffers)


class BatchPrefillWithPagedKVCacheWrapper(Paged):
    def plan(
        self, qo_indptr: torch.Tensor, paged_kv_indptr: torch.Tensor, paged_kv_indices: torch.Tensor,
        paged_kv_last_page_len: torch.Tensor, num_qo_heads: int, num_kv_heads: int, head_dim_qk: int,
        page_size: int, **given: Any,
    ) -> None:  # fmt: skip
        (self.cu_q,) = self.on_device(qo_indptr)
        self.plan_pages(paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, page_size)
        self.options = options_of(**given)

    def run(
        self, q: torch.Tensor, paged_kv_cache: Cache, *args: Any, return_lse: bool = False,
        out: torch.Tensor | None = None, lse: torch.Tensor | None = None, **given: Any,
    ) -> Results:  # fmt: skip
        options_of(**given)
        check_tensors(q, *pages_of(paged_kv_cache, self.kv_layout))
        return self.prefill_pages(q, paged_kv_cache, args, {"return_lse": return_lse, "out": out, "lse": lse})


class BatchAttentionWithAttentionSinkWrapper(BatchPrefillWithPagedKVCacheWrapper):
    """run(q, cache, sink, sm_scale), with a sink for each head."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self.has_sink = True


class BatchDecodeWithPagedKVCacheWrapper(Paged):
    def plan(
        self, indptr: torch.Tensor, indices: torch.Tensor, last_page_len: torch.Tensor, num_qo_heads: int,
        num_kv_heads: int, head_dim: int, page_size: int, **given: Any,
    ) -> None:  # fmt: skip
        self.plan_pages(indptr, indices, last_page_len, page_size)
        self.options = options_of(causal=True, **given)
        self.cu_q = torch.arange(len(indptr), dtype=torch.int32, device=self.device)

    def run(
        self, q: torch.Tensor, paged_kv_cache: Cache, *, return_lse: bool = False,
        out: torch.Tensor | None = None, lse: torch.Tensor | None = None, **given: Any,
    ) -> Results:  # fmt: skip
        options_of(**given)
        buffers = {"return_lse": return_lse, "out": out, "lse": lse}
        K, V = pages_of(paged_kv_cache, self.kv_layout)
        check_tensors(q, K, V)
        if self.use_tensor_cores:
            return self.prefill_pages(q, paged_kv_cache, (), buffers)
        check_page(K.shape[2])
        options = self.options
        slopes = slopes_of(q.shape[1], q.device) if options.alibi else None
        call = {"causal": True, "mask": options.mask, "scale": options.sm_scale, "slopes": slopes}
        O, lse = decode.attention(q[:, :, None], K, V, self.lengths, self.table, **call)
        return results(Attention(O[:, :, 0], lse[:, :, 0]), **buffers)


def fast_decode_plan(
    wrapper: BatchDecodeWithPagedKVCacheWrapper, *args: Any, global_override_indptr_cpu: Any = None, **given: Any
) -> None:
    """Plan as a wrapper does; global_override_indptr_cpu is a copy of the first argument."""
    type(wrapper).plan(wrapper, *args, **given)
