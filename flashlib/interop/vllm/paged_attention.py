"""The work of a vLLM attention backend, on tensors: our kernels over pages that vLLM owns."""

from collections import defaultdict
from typing import Any, NamedTuple

import torch

from flashlib import kernels, masks
from flashlib.kernels.launch.cache_layout import check_table
from flashlib.masks import Mask

FEW = 16  # at most so many queries of a sequence are decoded; more are a prompt


class AttentionOptions(NamedTuple):
    """The arguments of a layer's attention besides its tensors. left: keys before a query's own, or None."""

    scale: float
    causal: bool = True
    left: int | None = None
    softcap: float | None = None
    slopes: torch.Tensor | None = None
    sink: torch.Tensor | None = None

    def mask(self) -> Mask | None:
        """Return the mask; None if causal is all."""
        parts: list[Mask] = [] if self.softcap is None else [masks.softcap(self.softcap)]
        if self.slopes is not None:
            parts.append(masks.alibi(self.slopes.tolist()))
        if self.left is not None:
            parts.append(masks.window(self.left, 0 if self.causal else self.left))
        if len(parts) < 2:
            return parts[0] if parts else None
        whole = parts[0]
        for part in parts[1:]:
            whole = whole & part
        return whole

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments for the kernels."""
        return {"causal": self.causal, "mask": self.mask(), "scale": self.scale, "sink": self.sink}


def write(
    key: torch.Tensor, value: torch.Tensor, K: torch.Tensor, V: torch.Tensor, slots: torch.Tensor
) -> None:  # fmt: skip
    """Write new keys and values, (T, H_k, d), into pages (pages, H_k, page, d): token t into slot slots[t].

    A slot is page * (keys in a page) + row; a negative one belongs to no token. There may be more tokens than
    slots.
    """
    slots = slots[: len(key)]
    there, room = slots >= 0, len(K) * K.shape[2]
    if slots.device.type == "cpu" and (slots >= room).any():
        raise ValueError(f"slots has {int(slots.max())}, and the pages have {room}: pass numbers below {room}")
    page, row = slots[there] // K.shape[2], slots[there] % K.shape[2]
    for cache, new in ((K, key), (V, value)):
        cache[page, :, row] = new[: len(slots)][there].to(cache.dtype)


def attend(
    query: torch.Tensor, K: torch.Tensor, V: torch.Tensor, output: torch.Tensor, starts: torch.Tensor,
    lengths: torch.Tensor, table: torch.Tensor, asked: AttentionOptions,
) -> None:  # fmt: skip
    """Write to `output` the attention of several sequences' queries over their pages, including their own keys.

    query: (T, H_q, d); rows starts[b] to starts[b + 1] are the last tokens of sequence b. lengths: (B,), all
    tokens of each sequence. table: (B, most), the pages of each. output: like query, its last two axes as one or
    two. Sequences with equally many queries are decoded in one launch; a prompt is gathered from its pages first.
    Raises ValueError, before any work, for a table on the CPU with a page that is read and does not exist.
    """
    begins, of_length = starts.tolist(), defaultdict(list)
    if table.device.type == "cpu":
        _check_table(starts, lengths, table, K, masks.FAR if asked.left is None else asked.left)
    for b, (start, end) in enumerate(zip(begins, begins[1:], strict=False)):
        of_length[end - start].append(b)
    for N_q, sequences in of_length.items():
        if not N_q:
            continue
        rows = torch.tensor([range(begins[b], begins[b + 1]) for b in sequences], device=query.device)
        these = torch.tensor(sequences, device=query.device)
        q, its_lengths, its_table = query[rows].transpose(1, 2), lengths[these].int(), table[these].int()
        if N_q <= FEW:
            O = kernels.decode.attention(q, K, V, its_lengths, its_table, **asked.options()).O
        else:
            prompts = zip(q[:, None], its_lengths, its_table, strict=True)
            O = torch.cat([_of_prompt(one, K, V, length, its, asked) for one, length, its in prompts])
        output[rows] = O.transpose(1, 2).reshape(*rows.shape, *output.shape[1:]).to(output.dtype)


def _check_table(starts, lengths, table, K, left):
    """Raise ValueError if a page to be read does not exist; a sequence with few queries reads its window only."""
    new = starts.diff()
    lengths = lengths[: len(new)]
    begins = torch.where(new <= FEW, (lengths - new - left).clamp(min=0), 0)
    check_table(table[: len(new)], begins, lengths * (new > 0), K.shape[2], len(K))


def _of_prompt(q, K, V, length, pages, asked):
    length = int(length)
    pages = pages[: -(-length // K.shape[2])].long()
    k, v = (X[pages].transpose(0, 1).flatten(1, 2)[None, :, :length] for X in (K, V))
    return kernels.attention(q, k, v, **asked.options()).O
