"""The options of FlashInfer's functions: those that our kernels take, as masks, and a refusal of all others."""

import functools
from typing import Any, NamedTuple

import torch

from flashlib import masks

LARGEST_D = 256
FP8 = torch.float8_e4m3fn, torch.float8_e5m2
WITHOUT_EFFECT = {  # on the result: how FlashInfer computes it, or what it can tell from the tensors
    "backend", "block_tables", "data_type", "enable_pdl", "head_dim_vo", "kv_data_type", "max_sequence_kv",
    "max_token_per_sequence", "non_blocking", "q_data_type", "seq_lens", "seq_lens_q", "use_fp16_qk_reduction",
}  # fmt: skip


class NotTaken(NotImplementedError):
    """An option that our kernels do not take; the text names it."""


class Options(NamedTuple):
    """Options of a call. window_left: keys before a row's own, -1 for all; sm_scale: None for d^-0.5."""

    causal: bool = False
    window_left: int = -1
    logits_soft_cap: float | None = None
    pos_encoding_mode: str = "NONE"
    sm_scale: float | None = None

    @property
    def alibi(self) -> bool:
        return self.pos_encoding_mode == "ALIBI"

    @property
    def mask(self) -> masks.Mask | None:
        """The mask of window and soft cap, without causal."""
        return _mask(self.window_left, self.logits_soft_cap or 0.0)


def options_of(**given: Any) -> Options:
    """Return the options of a call; raise NotTaken for one that would change the result and is not in Options."""
    for name, value in given.items():
        if name not in Options._fields and name not in WITHOUT_EFFECT and value is not None and value is not False:
            raise NotTaken(name)
    options = Options(**{name: value for name, value in given.items() if name in Options._fields})
    if options.pos_encoding_mode not in ("NONE", "ALIBI"):
        raise NotTaken(f"pos_encoding_mode {options.pos_encoding_mode}")
    return options


def check_tensors(*tensors: torch.Tensor) -> None:
    """Raise NotTaken for a head dimension or a dtype that our kernels have no counterpart of."""
    for X in tensors:
        if X.dtype in FP8:
            raise NotTaken("8-bit keys and values without a scale for each token")
        if X.shape[-1] > LARGEST_D:
            raise NotTaken(f"head_dim above {LARGEST_D}")


def check_page(page: int) -> None:
    """Raise NotTaken for pages that our caches cannot have."""
    if page & (page - 1):
        raise NotTaken("page_size that is not a power of two")


def slopes_of(H: int, device: torch.device) -> torch.Tensor:
    """Return ALiBi's slopes of H heads, (H,), as FlashInfer and the paper define them for any H."""
    below = 1 << (H.bit_length() - 1)
    between = masks.alibi_slopes(2 * below)[::2][: H - below]
    found = torch.tensor([*masks.alibi_slopes(below), *between], dtype=torch.float32)
    return found.to(device)


@functools.lru_cache(maxsize=256)  # plans are cached by mask: equal numbers must give the same mask
def _mask(left, cap):
    hide = masks.window(left, None) if left >= 0 else None
    if not cap:
        return hide
    return masks.softcap(cap) if hide is None else masks.softcap(cap) & hide
