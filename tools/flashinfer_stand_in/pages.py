"""Caches in pages: where their tokens are, and append_paged_kv_cache, which writes new ones."""

import torch

from flashlib.kernels import append
from tools.flashinfer_stand_in.layouts import Cache, pages_of
from tools.flashinfer_stand_in.options import check_page, check_tensors


def get_seq_lens(indptr: torch.Tensor, last_page_len: torch.Tensor, page_size: int) -> torch.Tensor:
    """Return how many tokens each sequence has, (B,)."""
    return (indptr.diff() - 1).clamp(min=0) * page_size + last_page_len


def get_batch_indices_positions(
    append_indptr: torch.Tensor, seq_lens: torch.Tensor, nnz: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sequence and the position of each of nnz new tokens, the last of their sequences, int32."""
    rows = torch.arange(nnz, dtype=torch.int32, device=append_indptr.device)
    b = torch.searchsorted(append_indptr[1:].contiguous(), rows, right=True)
    inside = b < len(seq_lens)
    at = b.clamp(max=len(seq_lens) - 1)
    positions = seq_lens[at] - append_indptr[1:][at] + rows
    return torch.where(inside, b, -1).int(), torch.where(inside, positions, 0).int()


def table_of(indptr: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """Return the pages of each sequence as rows of a table, (B, most), int32. It waits for the GPU."""
    most = max(int(indptr.diff().max()), 1)
    at = indptr[:-1, None] + torch.arange(most, device=indptr.device)
    inside = at < indptr[1:, None]
    return torch.where(inside, indices[torch.where(inside, at, 0)], 0).int()


def append_paged_kv_cache(
    append_key: torch.Tensor, append_value: torch.Tensor, batch_indices: torch.Tensor, positions: torch.Tensor,
    paged_kv_cache: Cache, kv_indices: torch.Tensor, kv_indptr: torch.Tensor, kv_last_page_len: torch.Tensor,
    kv_layout: str = "NHD",
) -> None:  # fmt: skip
    """Write new keys and values, (nnz, H_k, d), into a cache: each token as a sequence with one new token."""
    K_cache, V_cache = pages_of(paged_kv_cache, kv_layout)
    check_tensors(K_cache, V_cache)
    check_page(K_cache.shape[2])
    table = table_of(kv_indptr, kv_indices)[batch_indices.clamp(min=0)]
    lengths = torch.where(batch_indices >= 0, positions + 1, 0).int()  # a token before key 0 is left out
    append.append(append_key[:, :, None], append_value[:, :, None], K_cache, V_cache, lengths, table)
