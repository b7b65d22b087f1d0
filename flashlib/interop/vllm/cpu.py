"""The backend of vLLM for CPUs, with our kernels in place of its own: pages are K above V, (H_k, 2 page, d)."""

from typing import Any

import torch
from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend, CPUAttentionBackendImpl

from flashlib.interop.vllm import paged_attention


class Backend(CPUAttentionBackend):
    """vLLM's backend with our Impl: the layout of pages and the metadata of a step are unchanged."""

    @staticmethod
    def get_impl_cls() -> type:
        """Return the class that computes."""
        return Impl


class Impl(CPUAttentionBackendImpl):
    """Writes to pages and attends to them with our kernels; raises ValueError for what they do not support."""

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        if self.is_fp8_kv_cache:
            raise ValueError("kv_cache_dtype is fp8, which our kernels read on a GPU only: pass 'auto'")
        if self.attn_type != "decoder":
            raise ValueError(f"the attention is of type {self.attn_type}; ours in vLLM is that of decoders")
        left = None if self.sliding_window == -1 else self.sliding_window - 1
        slopes, cap = self.alibi_slopes, self.logits_soft_cap or None
        self.options = paged_attention.AttentionOptions(self.scale, True, left, cap, slopes, self.sinks)

    def do_kv_cache_update(
        self, layer: torch.nn.Module, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> None:  # fmt: skip
        """Write a step's keys and values."""
        K, V = _pages(kv_cache)
        paged_attention.write(key, value, K, V, slot_mapping)

    def forward(
        self, layer: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor,
        attn_metadata: Any, output: torch.Tensor, output_scale: torch.Tensor | None = None,
        output_block_scale: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Attend to the pages; without metadata vLLM only warms up."""
        if output_scale is not None or output_block_scale is not None:
            raise ValueError("output_scale is given: O is not written in fp8")
        if attn_metadata is None:
            return output
        m = attn_metadata
        if m.dynamic_causal is not None:
            raise ValueError("dynamic_causal is given: whether a sequence is causal is the same for all")
        K, V = _pages(kv_cache)
        options = self.options._replace(causal=m.causal)
        paged_attention.attend(query, K, V, output, m.query_start_loc, m.seq_lens, m.block_table, options)
        return output


def _pages(kv_cache):
    """Return K and V in the layout of our caches: (pages, H_k, page, d)."""
    n, H_k, page, _ = kv_cache.shape
    return kv_cache.view(n, H_k, 2 * page, -1).chunk(2, dim=2)
