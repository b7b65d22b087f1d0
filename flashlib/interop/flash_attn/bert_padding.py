"""flash_attn.bert_padding: pack the tokens of padded sequences one after another, and unpack them. Differentiable.

unpad_input makes the packs and offsets for flash_attn_varlen_func, and pad_input takes its result.
"""

import torch


def unpad_input(
    hidden_states: torch.Tensor, attention_mask: torch.Tensor, unused_mask: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int, torch.Tensor]:
    """Return the tokens of all sequences in a pack, their indices, cu_seqlens, max_seqlen and seqused.

    hidden_states: (B, N, ...). attention_mask: (B, N) of any dtype, 1 for tokens, 0 for padding.
    unused_mask: the same, 1 for tokens that are in the pack but not used. The pack: (T, ...), sequence by
    sequence. indices: (T,) of int64, the position of each token among all B N. cu_seqlens: (B + 1,) of int32.
    max_seqlen: an int. seqused: (B,) of int32, the number of used tokens of each. These are the five results of
    flash_attn 2.7 and later; before that there were four, without seqused. Raises TypeError or ValueError for
    anything else.
    """
    kept = real = _tokens("attention_mask", attention_mask, hidden_states)
    if unused_mask is not None:
        kept = real | _tokens("unused_mask", unused_mask, hidden_states)
    lengths = kept.sum(dim=-1, dtype=torch.int32)
    offsets = torch.nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))
    indices = kept.flatten().nonzero().flatten()
    used = real.sum(dim=-1, dtype=torch.int32)
    longest = int(lengths.max()) if len(lengths) else 0
    return index_first_axis(hidden_states.flatten(0, 1), indices), indices, offsets, longest, used


def pad_input(hidden_states: torch.Tensor, indices: torch.Tensor, batch: int, seqlen: int) -> torch.Tensor:
    """Return a pack, (T, ...), as padded sequences, (batch, seqlen, ...): 0 where there is no token.

    indices: (T,), as unpad_input returns them.
    """
    return index_put_first_axis(hidden_states, indices, batch * seqlen).unflatten(0, (batch, seqlen))


def index_first_axis(input: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """Return input[indices]. input: (n, ...); indices: (T,) of int64."""
    return input.index_select(0, indices)


def index_put_first_axis(values: torch.Tensor, indices: torch.Tensor, first_axis_dim: int) -> torch.Tensor:
    """Return zeros (first_axis_dim, ...) with values, (T, ...), at indices, (T,) of int64."""
    return values.new_zeros(first_axis_dim, *values.shape[1:]).index_copy(0, indices, values)


def _tokens(name, mask, hidden_states):
    """Return a mask as bool; raise TypeError or ValueError unless it is (B, N), like hidden_states (B, N, ...)."""
    if not isinstance(mask, torch.Tensor):
        raise TypeError(f"{name} is of type {type(mask).__name__}; pass a tensor (B, N)")
    if mask.ndim != 2 or mask.shape != hidden_states.shape[:2]:
        raise ValueError(
            f"{name} has shape {tuple(mask.shape)} and hidden_states {tuple(hidden_states.shape)}; the first two "
            "axes of both must be equal, (B, N)"
        )
    return mask != 0
