"""Kernels that call the parts of kernels in answers: an update, a loop over keys, a split.

Results that an answer does not set are nan, and K and V have nan around them, so reading too far shows in the
results.
"""

# ruff: noqa: I001  flashlib.kernels before triton
import contextlib
import re
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from flashlib.checks.engine import Finding, Measured, SideFinding
from flashlib.checks.harness import undefined
from flashlib.checks.harness.launches import outside_id, unwrapped
from flashlib.checks.harness.watch import Watch, watched
from flashlib.kernels import DEVICE, INTERPRETED
from flashlib.learner.process import PACKAGE
from flashlib.private_apis import of_watching
from flashlib.softmax import State
import triton
import triton.language as tl

POISON = 64  # rows of nan before and after an input
IDS = "P_in_fp32", "sixteen_bits"  # for a product of two different dtypes, and for sums in 16 bits
TF32 = re.compile(r"tt\.dot .*inputPrecision = (?!ieee)\w+ : tensor<\w*xf32>")  # on fp32 tiles, in compiled code
UNPACKED = re.compile(r"values to unpack(?:.*got (\d+)\))?|iterable|'tuple' object")


def looped(answer: Callable) -> Callable:
    """Return a function of a row block and all of its keys that calls `answer` for each tile of B_c keys.

    answer: takes q, k, v, m, l, O_acc, visible and scale, and returns m, l and O_acc. The function returns those
    of the last tile, as a Measured.
    """

    def run(Q_i, K, V, visible, scale, B_c):
        tensors = _placed(q=Q_i, k=K, v=V) | {"visible": tensor(visible).to(torch.int8)}
        return _state_of(_step_kernel, tensors, *Q_i.shape, len(K), scale, answer, B_c)

    return run


def updated(answer: Callable) -> Callable:
    """Return a function of all scores of a row block that calls `answer` for each tile of B_c keys.

    answer: takes S, m, l, O_acc, v and scale_log2e, and returns m, l and O_acc. The function returns those of the
    last tile, as a Measured.
    """

    def run(S, V, scale_log2e, B_c):
        tensors = _placed(S=S, v=V)
        return _state_of(_update_kernel, tensors, len(S), V.shape[1], len(V), scale_log2e, answer, B_c)

    return run


def over_keys(answer: Callable) -> Callable:
    """Return a function of Q_i and of all K and V that calls `answer` once, for all keys.

    answer: takes q, pointers to K and V, m, l, O_acc, N_k, scale_log2e, an update, D and B_C, and returns m, l and
    O_acc. The function returns them as a Measured, with a Finding if full tiles are masked.
    """

    def run(Q_i, K, V, scale_log2e, B_C):
        tensors, N_k, selects = _placed(q=Q_i, K=K, V=V), len(K), []
        seen = of_watching.selections_seen(lambda condition: np.ndim(condition) and selects.append(condition))
        arguments = tensors, *Q_i.shape, N_k, scale_log2e, answer, B_C
        given, found, watch = _watched_state(_loop_kernel, *arguments, during=seen)
        whole, last = divmod(N_k, B_C)
        masks = [watch.masked[X] == watch.loads[X] > 0 if last else watch.masked[X] for X in ("K", "V")]
        if whole and any(masks) or not last and 1 < whole <= len(selects):
            found = found or SideFinding("whole_masked")
        return Measured(given, found)

    return run


def split(answer: Callable) -> Callable:
    """Return a function of sizes that returns `answer`'s results for each row block: full and end."""

    def run(N_q, N_k, B_r, B_c):
        T_r = triton.cdiv(N_q, B_r)
        bounds = torch.zeros((2, T_r), dtype=torch.int32, device=DEVICE)
        called(lambda: _split_kernel[(T_r,)](*bounds, N_q, N_k, answer, B_R=B_r, B_C=B_c), ("full", "end"))
        return tuple(bounds.cpu().numpy())

    return run


def _state_of(*arguments):
    given, found, _ = _watched_state(*arguments)
    return Measured(given, found)


def _watched_state(kernel, tensors, B_r, d, N_k, scale, answer, B_C, **how):
    """Return m, l and O_acc from a kernel with one program, a Finding about the kernel or None, and its Watch."""
    m, l = torch.full((2, B_r), torch.nan, device=DEVICE)
    state = m, l, torch.full((B_r, d), torch.nan, device=DEVICE)
    sizes = {"B_R": B_r, "B_C": B_C, "D": d}
    watch, used = launch_watched(
        kernel, 1, State._fields, tensors, *tensors.values(), *state, last=(N_k, scale, answer), **how, **sizes
    )
    found = Finding(outside_id(watch), name=watch.outside) if watch.outside else used
    return tuple(X.cpu().numpy() for X in state), found, watch


def launch_watched(
    kernel: triton.KernelInterface, programs: int, outputs: Sequence[str], readable: dict[str, torch.Tensor],
    *tensors: torch.Tensor, last: Sequence, ids: tuple[str, str] = IDS,
    during: contextlib.AbstractContextManager | None = None, **constants: Any,
) -> tuple[Watch, Finding | None]:  # fmt: skip
    """Launch a kernel; return the Watch of the tensors `readable`, and a Finding about how it uses them or None.

    It takes `tensors`, a tensor that says whether the outputs are in fp32, and `last`. ids: see `called`. during:
    entered for the launch. Reports writing to a `readable` tensor, and a tl.dot in tf32.
    """
    in_fp32 = torch.zeros(1, device=DEVICE)
    before, as_given = {name: X.clone() for name, X in readable.items()}, [X.clone() for X in tensors]

    def launch(tensors=tensors):
        return kernel[(programs,)](*tensors, in_fp32, *last, **constants)

    def again():
        launch(as_given)
        return as_given

    with watched(**readable) as watch, during or contextlib.nullcontext():
        compiled = called(launch, outputs, ids)
    if not in_fp32[0]:
        raise Finding(ids[1], names=", ".join(outputs))
    for name, X in readable.items():
        if not torch.equal(X.nan_to_num(), before[name].nan_to_num()):
            return watch, Finding("input_written", name=name.partition("_")[0])
    tf32 = watch.tf32 if INTERPRETED else TF32.search(compiled.asm["ttir"])
    if tf32 or watch.outside:
        return watch, Finding("tf32") if tf32 else None
    watch.undefined = {name.partition("_")[0] for name in watch.undefined}
    return watch, undefined.depends(watch, tensors, again)


def called(launch: Callable[[], Any], outputs: Sequence[str], ids: tuple[str, str] = IDS) -> Any:
    """Return launch(), which runs a kernel that unpacks an answer's results, `outputs` by name.

    Raises Finding if the kernel cannot use them; ids: as IDS.
    """
    names = ", ".join(outputs)
    try:
        return unwrapped(launch)
    except Exception as error:
        said = str(error)
        if "same dtype" in said:
            raise Finding(ids[0]) from None
        if "Loop-carried variable" in said:  # the compiler's error for a sum whose type changes
            raise Finding(ids[1], names=names) from None
        here = not _in_answer(error)
        if here and "NoneType" in said:
            raise Finding("nothing_returned") from None
        if here and (how := UNPACKED.search(said)):
            given = f"{how[1]} values" if how[1] else "one value" if "iterable" in said else "too many values"
            raise Finding("outputs", given=given, n=len(outputs), names=names) from None
        raise


def _in_answer(error):
    """Return whether an error arose in the lines of an answer, or in code that they call."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return not all("site-packages" in file or file.startswith(PACKAGE) for file in files)


def tensor(X: np.ndarray) -> torch.Tensor:
    """Return an array as a tensor on the device."""
    return torch.from_numpy(np.ascontiguousarray(X)).to(DEVICE)


def amid_nan(X: np.ndarray) -> torch.Tensor:
    """Return an array as a tensor, with nan before and after it in memory."""
    around = np.full((POISON, *X.shape[1:]), np.nan, X.dtype)
    return tensor(np.concatenate([around, X, around]))[POISON : POISON + len(X)]


def _placed(**arrays):
    return {name: amid_nan(X) for name, X in arrays.items()}


@triton.jit
def _step_kernel(
    Q_ptr, K_ptr, V_ptr, visible_ptr, m_ptr, l_ptr, O_ptr, in_fp32_ptr, N_k, scale, f: tl.constexpr,
    B_R: tl.constexpr, B_C: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    offs_m, offs_d = tl.arange(0, B_R), tl.arange(0, D)
    q = tl.load(Q_ptr + offs_m[:, None] * D + offs_d[None, :])  # (B_R, D)
    m, l, O_acc = _start(B_R, D)
    for start in range(0, N_k, B_C):
        offs_n = start + tl.arange(0, B_C)
        cols = offs_n[:, None] * D + offs_d[None, :]  # (B_C, D)
        k = tl.load(K_ptr + cols)
        v = tl.load(V_ptr + cols)
        visible = tl.load(visible_ptr + offs_m[:, None] * N_k + offs_n[None, :]) != 0  # (B_R, B_C)
        m, l, O_acc = f(q, k, v, m, l, O_acc, visible, scale)
    _store(m, l, O_acc, m_ptr, l_ptr, O_ptr, in_fp32_ptr, B_R, D)


@triton.jit
def _update_kernel(
    S_ptr, V_ptr, m_ptr, l_ptr, O_ptr, in_fp32_ptr, N_k, scale_log2e, f: tl.constexpr,
    B_R: tl.constexpr, B_C: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    offs_m, offs_d = tl.arange(0, B_R), tl.arange(0, D)
    m, l, O_acc = _start(B_R, D)
    for start in range(0, N_k, B_C):
        offs_n = start + tl.arange(0, B_C)
        S = tl.load(S_ptr + offs_m[:, None] * N_k + offs_n[None, :])  # (B_R, B_C)
        v = tl.load(V_ptr + offs_n[:, None] * D + offs_d[None, :])  # (B_C, D)
        m, l, O_acc = f(S, m, l, O_acc, v, scale_log2e)
    _store(m, l, O_acc, m_ptr, l_ptr, O_ptr, in_fp32_ptr, B_R, D)


@triton.jit
def _loop_kernel(
    Q_ptr, K_ptr, V_ptr, m_ptr, l_ptr, O_ptr, in_fp32_ptr, N_k, scale_log2e, f: tl.constexpr,
    B_R: tl.constexpr, B_C: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    q = tl.load(Q_ptr + tl.arange(0, B_R)[:, None] * D + tl.arange(0, D)[None, :])  # (B_R, D)
    m, l, O_acc = _start(B_R, D)
    m, l, O_acc = f(q, K_ptr, V_ptr, m, l, O_acc, N_k, scale_log2e, _update, D, B_C)
    _store(m, l, O_acc, m_ptr, l_ptr, O_ptr, in_fp32_ptr, B_R, D)


@triton.jit
def _split_kernel(full_ptr, end_ptr, N_q, N_k, f: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr):
    i = tl.program_id(0)
    full, end = f(i, N_q, N_k, B_R, B_C)
    tl.store(full_ptr + i, full)
    tl.store(end_ptr + i, end)


@triton.jit
def _start(B_R: tl.constexpr, D: tl.constexpr):
    minus_inf = tl.full((B_R,), -float("inf"), tl.float32)
    return minus_inf, tl.zeros((B_R,), tl.float32), tl.zeros((B_R, D), tl.float32)


@triton.jit
def _store(m, l, O_acc, m_ptr, l_ptr, O_ptr, in_fp32_ptr, B_R: tl.constexpr, D: tl.constexpr):
    offs_m = tl.arange(0, B_R)
    tl.store(m_ptr + offs_m, m)
    tl.store(l_ptr + offs_m, l)
    tl.store(O_ptr + offs_m[:, None] * D + tl.arange(0, D)[None, :], O_acc)
    in_fp32: tl.constexpr = m.dtype == tl.float32 and l.dtype == tl.float32 and O_acc.dtype == tl.float32
    tl.store(in_fp32_ptr, 1.0 if in_fp32 else 0.0)


@triton.jit
def _update(S, m, l, O_acc, v, scale_log2e):
    m_old = m
    m = tl.maximum(m_old, tl.max(S, axis=1) * scale_log2e)
    alpha = tl.exp2(m_old - m)
    P = tl.exp2(S * scale_log2e - m[:, None])
    l = alpha * l + tl.sum(P, axis=1)
    O_acc = alpha[:, None] * O_acc + tl.dot(P.to(v.dtype), v, input_precision="ieee")
    return m, l, O_acc
