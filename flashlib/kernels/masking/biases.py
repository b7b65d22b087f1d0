"""Tensors that changes of scores read, on the host: whether kernels take them, and how they are passed to kernels.

A plan knows only a tensor's sizes and strides; each call passes its own tensor, which may be a new one.
"""

from collections.abc import Iterable, Sequence

import torch

from flashlib import masks
from flashlib.kernels.launch.inputs import DTYPES, check_readable, kernel_input
from flashlib.kernels.masking.device_side import MaskArgs, ScoreChange
from flashlib.kernels.masking.looked_up import Bias
from flashlib.kernels.masking.score_tests import device_function


def tensors_read(mask: masks.Mask | None) -> tuple[torch.Tensor, ...]:
    """Return the tensors that a mask's changes of scores read."""
    return () if mask is None else mask.biases


def tensors_by_name(mask: masks.Mask | None) -> dict[str, torch.Tensor]:
    """Return the same tensors by the names that errors use."""
    return {f"bias {k} of the mask" if k else "the bias of the mask": T for k, T in enumerate(tensors_read(mask))}


def check(change: Iterable[masks.Mask], Q: torch.Tensor, place: masks.Place) -> None:
    """Raise TypeError or ValueError unless kernels take the tensors that these masks read."""
    for part in change:
        lookup = part.device_change(place, Q.shape[1]).lookup
        if lookup is None:
            continue
        T = lookup.bias
        if not isinstance(T, torch.Tensor):
            raise TypeError(f"bias is of type {type(T).__name__}; pass a tensor, e.g. torch.as_tensor(bias)")
        if T.dtype not in DTYPES:
            raise TypeError(f"bias has dtype {T.dtype}; accepted are {', '.join(map(str, DTYPES))}")
        if T.device != Q.device:
            raise ValueError(f"bias is on {T.device} and Q on {Q.device}; move them to one device")
        check_readable(bias=T)
        if lookup.own is None:
            _ask_at_the_edges(lookup, Q)


def check_rows(change: Iterable[masks.Mask], place: masks.Place, H: int, N_q: int) -> None:
    """Raise ValueError for a bias that depends on query positions: in decoding they differ between sequences."""
    for part in change:
        lookup = part.device_change(place, H).lookup
        if lookup is not None and lookup.by_row:
            raise ValueError(
                f"bias has {N_q} queries, and in decoding their positions differ between sequences: pass "
                "masks.distance_bias, or masks.bias with at= and its kernel"
            )


def check_gradients(mask: masks.Mask | None, given: Sequence[torch.Tensor]) -> None:
    """Raise TypeError or ValueError unless the gradients of a mask's biases can be added to these tensors."""
    tensors = tensors_read(mask)
    if not isinstance(given, tuple | list) or len(given) != len(tensors):
        raise TypeError(f"d_bias is {given!r:.60}; pass a tensor for each bias of the mask: {len(tensors)}")
    for X, T in zip(given, tensors, strict=True):
        if not isinstance(X, torch.Tensor) or X.dtype != torch.float32:
            raise TypeError(f"d_bias has {getattr(X, 'dtype', type(X).__name__)}; pass tensors of float32")
        if X.shape != T.shape or X.device != T.device:
            raise ValueError(
                f"d_bias has shape {tuple(X.shape)} on {X.device}, and bias {tuple(T.shape)} on {T.device}; they "
                "must be equal"
            )


def _ask_at_the_edges(lookup, Q):
    """Call a user's function for the first and last rows and keys, between which all distances occur."""
    (B, H), device, place = Q.shape[:2], Q.device, lookup.place
    if not (B and H and place.N_q and place.N_k):
        return
    b, h = torch.arange(B, device=device)[:, None, None, None], torch.arange(H, device=device)[:, None, None]
    rows, keys = (torch.arange(n, device=device) for n in (place.N_q, place.N_k))
    rows = rows[:, None] + place.past
    for r, c in ((rows[[0, -1]], keys), (rows, keys[[0, -1]])):
        lookup.index(place._replace(b=b, h=h), r, c, lookup.shape)


def bias_change(change: masks.DeviceChange) -> tuple[ScoreChange, Bias]:
    """Return the ScoreChange of a mask that reads a tensor, and a Bias without the pointer to its entries."""
    lookup = change.lookup
    assert lookup is not None
    at, own, shape = lookup.function, lookup.own, lookup.shape
    strides = read(lookup.bias).reshape(shape).stride()
    if at == "of_place" and sum(n * stride for n, stride in zip(shape[2:], strides[2:], strict=True)) >= 2**31:
        at = "of_far_place"
    alike = [n == 1 and own is not None for n in shape]
    strides = tuple(None if same else stride for same, stride in zip(alike, strides, strict=True))
    sizes = tuple(None if same else n for same, n in zip(alike, shape, strict=True))
    functions = (device_function(f) for f in (change.score, change.slope, at, lookup.by_bias))
    return ScoreChange(*functions), Bias(None, strides, sizes, own)


def read(T: torch.Tensor) -> torch.Tensor:
    """Return a bias as kernels read it: with strides that `torch.zeros_like` gives to its sums, too."""
    T = kernel_input(T.detach()) if T.ndim and T.stride(-1) == 1 else kernel_input(T.detach()[..., None])[..., 0]
    return T if torch.empty_like(T, device="meta").stride() == T.stride() else T.contiguous()


def filled(args: MaskArgs, tensors: Iterable[torch.Tensor], **asked: Iterable) -> MaskArgs:
    """Return a mask's numbers with pointers: the results of `read`, and other fields of a Bias, each in order."""
    each = iter(zip(tensors, *asked.values(), strict=True))
    scores = []
    for numbers in args.scores:
        if isinstance(numbers, Bias):
            entries, *others = next(each)
            numbers = numbers._replace(entries=entries, **dict(zip(asked, others, strict=True)))
        scores.append(numbers)
    return args._replace(scores=tuple(scores))
