"""vLLM's backend for a GPU with our kernels, not its FlashAttention: pages have K next to V, (H_k, page, 2 d).

Written from the sources of vLLM 0.32.0, and never run. Lengths and starts are read in each layer, which waits for
the GPU, so pass enforce_eager=True.
"""

from typing import Any

import torch
from vllm.v1.attention.backends.flash_attn import FlashAttentionBackend, FlashAttentionImpl

from flashlib.interop.vllm import paged_attention


class Backend(FlashAttentionBackend):
    """vLLM's backend with our Impl."""

    @staticmethod
    def get_impl_cls() -> type:
        """Return the class that computes."""
        return Impl


class Impl(FlashAttentionImpl):
    """Writes to pages and attends to them with our kernels; raises ValueError for what they do not support."""

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        if self.kv_cache_dtype != "auto":
            raise ValueError(f"kv_cache_dtype is {self.kv_cache_dtype}; pass 'auto'")
        if self.attn_type != "decoder":
            raise ValueError(f"the attention is of type {self.attn_type}; ours in vLLM is that of decoders")
        left = self.sliding_window[0] if self.sliding_window is not None else -1
        left = None if left < 0 else left
        cap, slopes = self.logits_soft_cap or None, self.alibi_slopes
        self.options = paged_attention.AttentionOptions(self.scale, True, left, cap, slopes, self.sinks)

    def do_kv_cache_update(
        self, layer: torch.nn.Module, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> None:  # fmt: skip
        """Write a step's keys and values."""
        K, V = kv_cache.split(self.head_size, dim=-1)
        paged_attention.write(key, value, K, V, slot_mapping)

    def forward(
        self, layer: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
        kv_cache: torch.Tensor, attn_metadata: Any, output: torch.Tensor,
        output_scale: torch.Tensor | None = None, output_block_scale: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Attend to the pages; without metadata vLLM only measures how much memory that takes."""
        if output_scale is not None or output_block_scale is not None:
            raise ValueError("output_scale is given: O is not written in fp8")
        if attn_metadata is None:
            return output.fill_(0)
        m = attn_metadata
        if not isinstance(m.causal, bool) or m.mm_prefix_query_range_tensor is not None:
            raise ValueError("causal differs between sequences or tokens; ours in vLLM is the same for all")
        if m.rswa_prefix_lens is not None or m.dcp_context_kv_lens is not None:
            raise ValueError("a window beside a prompt, or a context over several GPUs: not with ours in vLLM")
        K, V = kv_cache.split(self.head_size, dim=-1)
        options = self.options._replace(causal=m.causal)
        paged_attention.attend(query, K, V, output, m.query_start_loc, m.seq_lens, m.block_table, options)
        return output
