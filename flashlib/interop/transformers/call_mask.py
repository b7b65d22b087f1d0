"""The mask of a call: what transformers says is seen, and the flashlib mask that says the same.

A function registered in AttentionMaskInterface may return any object, which reaches the attention unchanged. So no
N_q x N_k table is made here: recognised patterns become windows and documents, which skip tiles; padding becomes
an interval of keys; anything else is evaluated for each score and stored as bits.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn.attention.flex_attention import BlockMask
from transformers import masking_utils

from flashlib import masks
from flashlib.interop.transformers.padding import Present
from flashlib.interop.transformers.patterns import Pattern, recognised

FEW = 8  # at most so many queries are decoded


class Hides(NamedTuple):
    """What is hidden, as arguments of an attention: a mask or None, whether it is causal, and the number of keys.

    No query sees keys from `keys` on: K and V are cut there. After that, causal is aligned bottom-right.
    """

    mask: masks.Mask | None
    causal: bool
    keys: int


class New(NamedTuple):
    """What few new tokens see of a cache: each sees all keys up to its own. Nothing here waits for the GPU.

    lengths: the number of tokens of each sequence, including the new ones, (B,), int32. padding: added to the
    scores of keys, (B, 1, 1, N_k): -inf for padding; None if no padding table was given.
    """

    lengths: torch.Tensor
    padding: torch.Tensor | None

    @classmethod
    def of(
        cls, sizes: tuple[int, int, int], start: int | torch.Tensor, present: torch.Tensor | None, device: Any
    ) -> "New":  # fmt: skip
        """Return it for tokens of which the first is at position `start`."""
        B, N_q, _ = sizes
        if isinstance(start, torch.Tensor):  # copied, as a static cache goes on counting in its own tensor
            lengths = (start + N_q).to(torch.int32).expand(B).contiguous()
        else:
            lengths = torch.full((B,), start + N_q, dtype=torch.int32, device=device)
        padding = None if present is None else torch.where(present, 0.0, -torch.inf)[:, None, None]
        return cls(lengths, padding)


class Seen(BlockMask):
    """What is seen in one call of a model. It is a BlockMask, as only that and a table are passed on unchanged.

    start: the position of the first query among the keys. pattern: the recognised pattern, or None. asks: the
    function to call, on this device, if there is no pattern. present: keys that are not padding, (B, N_k); None:
    all. start and present are read only when needed, since they may be on a GPU that is still at work. causal:
    whether it is known to be just causal, which torch.compile can trace. new: for few new tokens over a cache, a
    New, so that the length and the padding stay on the GPU; otherwise None.
    """

    def __init__(
        self, sizes: tuple[int, int, int], start: int | torch.Tensor, pattern: Pattern | None, asks: Callable,
        present: torch.Tensor | None, device: Any = None,
    ):  # fmt: skip
        self.device = device
        self.sizes, self.pattern, self.asks, self._start, self._present = sizes, pattern, asks, start, present
        _, N_q, N_k = sizes
        plain = pattern == Pattern(right=0)
        self.causal = plain and N_q == N_k and self.start == 0 and self.present is None
        self.new = New.of(sizes, start, present, device) if plain and N_q <= FEW and not self.causal else None
        self.made: dict[float | None, Hides] = {}

    @functools.cached_property
    def start(self) -> int:
        """The position of the first query among the keys."""
        return int(self._start)

    @functools.cached_property
    def present(self) -> torch.Tensor | None:
        """Keys that are not padding, (B, N_k); None if there is no padding."""
        present = self._present
        return None if present is None or bool(present.all()) else present

    @functools.cached_property
    def padded(self) -> bool:
        """Whether any key up to the last query is padding. This waits for the GPU, once for all layers."""
        present, (_, N_q, _) = self._present, self.sizes
        return present is not None and not bool(present[:, : self.start + N_q].all())

    @property
    def shape(self) -> tuple[int, int, int, int]:  # type: ignore[override]
        """Four axes, by which transformers recognises a mask that is already made."""
        B, N_q, N_k = self.sizes
        return B, 1, N_q, N_k

    @property
    def ndim(self) -> int:
        """The number of axes of a mask that is already made."""
        return 4

    def __repr__(self):
        return f"Seen(<{' x '.join(map(str, self.shape))}, {self.pattern or self.asks}>)"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"this model looks into its mask (.{name}), which is not a table: pass tables=True to register"
        )

    def hides(self, softcap: float | None = None) -> Hides:
        """Return what is hidden, with a soft cap in the mask if there is one. All layers share the result."""
        if softcap not in self.made:
            if softcap is None:
                self.made[None] = _hides(self)
            else:
                self.made[softcap] = capped(self.hides(), softcap)
        return self.made[softcap]


def capped(hides: Hides, softcap: float) -> Hides:
    """Return what is hidden with a soft cap in the mask."""
    cap, (mask, causal, keys) = masks.softcap(float(softcap)), hides
    parts = [cap, *([masks.causal()] if causal else []), *([] if mask is None else [mask])]
    return Hides(masks.intersection(parts), False, keys)


@torch.compiler.disable  # masks are made between two graphs
def mask_of_call(
    batch_size: int, q_length: int, kv_length: int, q_offset: int | torch.Tensor = 0,
    kv_offset: int | torch.Tensor = 0, mask_function: Callable = masking_utils.causal_mask_function,
    attention_mask: torch.Tensor | None = None, local_size: int | None = None,
    allow_is_causal_skip: bool = True, allow_is_bidirectional_skip: bool = False, use_vmap: bool = False,
    device: Any = None, dtype: torch.dtype | None = None, config: Any = None, **others: Any,
) -> Seen:  # fmt: skip
    """Return the mask of a call: the function registered in AttentionMaskInterface.

    local_size is also in mask_function; no mask is skipped, even where that is allowed; device and dtype apply to
    tables. Raises TypeError for unknown arguments.
    """
    if given := sorted(name for name, value in others.items() if value is not None):
        raise TypeError(
            f"transformers makes a mask with {', '.join(given)}, which flashlib does not know: tried were the "
            "versions in flashlib.interop.transformers.versions; pass tables=True to register"
        )
    kv_offset = int(kv_offset)
    if isinstance(q_offset, torch.Tensor):
        q_offset = q_offset.clone()  # a static cache goes on counting in the tensor that it passes
    present = masking_utils.prepare_padding_mask(attention_mask, kv_length, kv_offset)
    if present is not None:
        present = present[:, kv_offset : kv_offset + kv_length].bool()
    asks = functools.partial(_asked, mask_function, q_offset, kv_offset)
    pattern = recognised(mask_function)
    if use_vmap:  # it is written for one number at a time
        table = masking_utils.sdpa_mask(
            batch_size, q_length, kv_length, q_offset, kv_offset, mask_function,
            allow_is_causal_skip=False, use_vmap=True, device=device,
        )  # fmt: skip
        asks = functools.partial(_looked_up, table)
    sizes, start = (batch_size, q_length, kv_length), q_offset - kv_offset
    return Seen(sizes, start, pattern, asks, present, device)


def of_table(table: torch.Tensor, B: int, N_q: int, N_k: int) -> tuple[Seen, torch.Tensor | None]:
    """Return the mask for a table of 4 axes, and what it adds to scores besides hiding them, or None.

    table: bools, or numbers to add: the least number of a dtype, or -inf, hides a score. Raises ValueError for
    other shapes.
    """
    added = None
    if table.ndim != 4 or table.shape[0] not in (1, B) or tuple(table.shape[2:]) != (N_q, N_k):
        raise ValueError(
            f"the mask has shape {tuple(table.shape)}; a table of ({B} or 1, 1 or H, {N_q}, {N_k}) is accepted"
        )
    if table.dtype != torch.bool:
        hidden = table <= torch.finfo(table.dtype).min / 2
        if not bool((hidden | (table == 0)).all()):
            added = table.masked_fill(hidden, 0)
        table = ~hidden
    asks = functools.partial(_looked_up, table)
    return Seen((B, N_q, N_k), N_k - N_q, None, asks, None, table.device), added


def _hides(seen):
    found = None if seen.pattern is None else _by_pattern(seen)
    N_k = seen.sizes[2]
    keys, parts = found or (N_k, [masks.from_function(_Asks(seen, N_k))])
    if parts in ([], [masks.causal()]):
        return Hides(None, bool(parts), keys)
    return Hides(masks.in_one_call(masks.intersection(parts)), False, keys)


def _by_pattern(seen):
    """Return how many keys are seen at all, and the masks that describe them; None if no mask does."""
    (B, N_q, N_k), pattern, start = seen.sizes, seen.pattern, seen.start
    keys = max(0, min(N_k, start + N_q + pattern.right))
    parts = _window(pattern, start - (keys - N_q), N_q, keys)
    if parts is None or pattern.ids is not None and pattern.ids.shape != (B, keys):
        return None
    if pattern.ids is not None:
        parts.append(masks.documents(pattern.ids.cpu().numpy()))
    if seen.present is not None and not bool(seen.present[:, :keys].all()):
        interval = Present.of(seen.present[:, :keys])
        if interval is None:
            return None
        parts.append(interval)
    return keys, parts


def _window(pattern, apart, N_q, keys):
    """Return [] if all is seen, or [the window]; None if there is none. apart: how far rows are ahead of r."""
    left, right = pattern.left - apart, pattern.right + apart
    left, right = None if left >= keys - 1 else left, None if right >= N_q - 1 else right
    if left is None and right is None:
        return []
    return None if min(n for n in (left, right) if n is not None) < 0 else [masks.window(left, right)]


class _Asks:
    """A mask function f(b, h, r, c) for `keys` keys that takes arrays or tensors."""

    def __init__(self, seen, keys):
        self.seen, self.past = seen, keys - seen.sizes[1]

    def __call__(self, b, h, r, c):
        device = c.device if isinstance(c, torch.Tensor) else self.seen.device
        b, h, i, c_ = (torch.as_tensor(X, device=device) for X in (b, h, r - self.past, c))
        found = self.seen.asks(b, h, i, c_)
        if self.seen.present is not None:
            found = found & self.seen.present.to(device)[b, c_]
        return found if isinstance(c, torch.Tensor) else found.cpu().numpy()


def _asked(mask_function, q_offset, kv_offset, b, h, i, c):
    """Call a function of transformers, which handles one head at a time."""
    return mask_function(b, torch.zeros_like(h), i + q_offset, c + kv_offset)


def _looked_up(table, b, h, i, c):
    b, h = b.clamp(max=table.shape[0] - 1), h.clamp(max=table.shape[1] - 1)
    return table.to(c.device)[b, h, i, c]
