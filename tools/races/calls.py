"""Small calls of our kernels on a GPU, to be run under a sanitizer; their results are not looked at.

racecheck gets the kernels whose warps are all alike. In those with roles it does not follow the barriers by which
roles wait for each other, and reports whatever they pass on. ConSan does follow them, on a Hopper GPU: it gets the
backward passes. A forward pass with roles takes it more than five minutes to compile, and it refuses the portable
kernels that keep Q in registers.
"""

import importlib
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from flashlib import kernels, masks
from flashlib.kernels import append, backward, decode, eight_bits, forward, merge, softmax, varlen
from flashlib.kernels.ablations import decode as other_decode
from flashlib.lm import rotary
from tools.races import planted

N_Q, N_K, H, H_K = 333, 411, 4, 2  # ragged: several tiles, the last of them cut
LADDER = "r2_softmax", "r3_flash", "r4_exp2", "r5_causal", "r8_descriptors"
HOPPER_LADDER = (
    "r1_alike", "r2_producer", "r3_two_consumers", "r4_half_columns", "r5_in_order", "r6_reducer",
)  # fmt: skip
MASKS: dict[str, Callable[[], masks.Mask]] = {
    "window": lambda: masks.window(70, 20),
    "documents": lambda: masks.documents([0] * 100 + [1] * 311),
    "bits": lambda: masks.from_function(lambda r, c: (r * c) % 3 != 1),
    "bias": lambda: masks.bias(torch.randn(1, H, N_K, N_K, device=kernels.DEVICE, requires_grad=True)),
    "distance bias": lambda: masks.distance_bias(
        torch.randn(H, 2 * N_K - 1, device=kernels.DEVICE, requires_grad=True)
    ),
}


def randn(*shape: int, dtype: torch.dtype = torch.bfloat16, grad: bool = False) -> torch.Tensor:
    return torch.randn(*shape, device=kernels.DEVICE).to(dtype).requires_grad_(grad)


def given(
    d: int, dtype: torch.dtype = torch.bfloat16, *, heads: int = H_K, N_q: int = N_Q, grad: bool = False
) -> Any:
    """Return Q, K, V."""
    return [randn(1, h, n, d, dtype=dtype, grad=grad) for h, n in ((H, N_q), (heads, N_K), (heads, N_K))]


def portable_forward(d: int, causal: bool, dtype: torch.dtype) -> None:
    forward.attention(*given(d, dtype), causal=causal)


def portable_backward(d: int, causal: bool, deterministic: bool) -> None:
    Q, K, V = given(d)
    saved = forward.attention(Q, K, V, causal=causal)
    backward.backward(Q, K, V, *saved, torch.randn_like(Q), causal=causal, deterministic=deterministic)


def masked(name: str, deterministic: bool) -> None:
    Q, K, V = given(64, N_q=N_K, grad=True)
    O, _ = kernels.attention(
        Q, K, V, mask=MASKS[name](), sink=torch.zeros(H, device=kernels.DEVICE), deterministic=deterministic
    )
    O.sum().backward()


def packed(causal: bool) -> None:
    Q, K, V = (randn(N_K, heads, 64, grad=True) for heads in (H, H_K, H_K))
    offsets = torch.tensor([0, 7, 300, N_K], dtype=torch.int32, device=kernels.DEVICE)
    varlen.attention(Q, K, V, offsets, offsets, causal=causal).O.sum().backward()


def decoding(N_q: int, page: int, parts: int | None, small: bool = False, by: Any = decode) -> None:
    """Append tokens to a cache, contiguous (page 0) or in pages, and attend to it."""
    B, d, N = 3, 64, 512
    lengths = torch.tensor([N - 3, 70, 200], dtype=torch.int32, device=kernels.DEVICE)
    shape = (B * N // page, H_K, page) if page else (B, H_K, N)
    table = (
        torch.arange(B * N // page, dtype=torch.int32, device=kernels.DEVICE).flip(0).view(B, -1) if page else None
    )
    K, V = (randn(*shape, d).to(torch.float8_e4m3fn if small else torch.bfloat16) for _ in range(2))
    scales = {f"{x}_scale": torch.ones(shape, device=kernels.DEVICE) for x in "kv"} if small else {}
    turn = rotary.angles(N, d, device=kernels.DEVICE)
    append.append(*randn(2, B, H_K, N_q, d), K, V, lengths, table, rotary=turn, **scales)
    Q = append.rotate(randn(B, 4 * H, N_q, d), lengths, turn)
    by.attention(Q, K, V, lengths, table, causal=N_q > 1, parts=parts, **scales)


def merged() -> None:
    O, O_j = randn(2, 2, H, N_Q, 64, dtype=torch.float32)
    lse, lse_j = randn(2, 2, H, N_Q, dtype=torch.float32)
    merge.merge(O, lse, O_j, lse_j, torch.empty_like(O, dtype=torch.bfloat16))


def rung(name: str, causal: bool) -> None:
    module = importlib.import_module(f"flashlib.kernels.ladder.{name}")
    module.attention(*given(64, heads=H), causal=causal)


def backward_of(module: str, d: int, causal: bool) -> None:
    Q, K, V = given(d, heads=H)
    saved = torch.randn_like(Q), Q.new_full(Q.shape[:3], 5.0, dtype=torch.float32)  # O and lse: any numbers do
    found = importlib.import_module(f"flashlib.kernels.{module}")
    found.backward(Q, K, V, *saved, torch.randn_like(Q), causal=causal)


def by_size() -> Iterator[tuple[str, Callable[[], object]]]:
    for d, causal in itertools.product((64, 128, 256), (False, True)):
        of = f"d {d}{', causal' * causal}"
        yield f"forward, {of}", partial(portable_forward, d, causal, torch.bfloat16)
        yield f"backward, {of}", partial(portable_backward, d, causal, deterministic=not causal)
        yield f"eight bits, {of}", lambda d=d, causal=causal: eight_bits.attention(*given(d), causal=causal)


def by_options() -> Iterator[tuple[str, Callable[[], object]]]:
    yield "softmax", lambda: softmax.softmax(randn(70, 333))
    yield "forward, fp32", partial(portable_forward, 64, True, torch.float32)
    yield "merge", merged
    for name, deterministic in itertools.product(MASKS, (False, True)):
        yield f"mask: {name}{', deterministic' * deterministic}", partial(masked, name, deterministic)
    for causal in (False, True):
        yield f"a pack{', causal' * causal}", partial(packed, causal)
    for page, N_q, parts in itertools.product((0, 16), (1, 5), (1, 4)):
        of = f"{'pages' if page else 'contiguous'}, {N_q} queries, {parts} parts"
        yield f"decode, {of}", partial(decoding, N_q, page, parts)
    yield "decode, fp8 in pages", partial(decoding, 1, 16, 4, small=True)
    yield "decode, the last program merges", partial(decoding, 1, 0, 4, by=other_decode)
    for name in LADDER:
        yield f"ladder, {name}", partial(rung, name, name >= "r5")
    yield "ladder, plain_backward", partial(backward_of, "ladder.plain_backward", 128, True)


def with_roles() -> Iterator[tuple[str, Callable[[], object]]]:
    for name in HOPPER_LADDER:
        yield f"Hopper backward ladder, {name}", partial(backward_of, f"hopper.backward_ladder.{name}", 128, False)
    for d, causal in itertools.product((64, 128, 256), (False, True)):
        of = f"d {d}{', causal' * causal}"
        yield f"Hopper backward, {of}", partial(backward_of, "hopper.backward", d, causal)


CALLS = {"racecheck": dict([*by_size(), *by_options()]), "consan": dict(with_roles())}
PLANTED = {"racecheck": planted.by_warps, "consan": planted.before_the_copy}  # what each sanitizer must find
