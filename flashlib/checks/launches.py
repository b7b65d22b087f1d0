"""Make a plain function of one that launches a Triton kernel, so that `examine` can hold it against cases.

Inputs become tensors on the device with nan around them, outputs tensors filled with nan: what reads too far comes
out as nan, what is not written stays nan, and what is written outside an output is found. An answer that is not a
kernel but a part of one is called by a kernel of this module.
"""

# ruff: noqa: I001  flashlib.kernels before triton
import ast
import inspect
import textwrap
from dataclasses import replace
from functools import cache, wraps
from typing import NamedTuple

import numpy as np
import torch

from flashlib import tiled
from flashlib.checks.examine import Case, Finding, examine
from flashlib.checks.values import show
from flashlib.checks.verdict import Verdict
from flashlib.kernels import DEVICE
import triton
import triton.language as tl

BORDER = 512  # elements
DTYPES = "P is fp32 and v is not: both inputs of tl.dot have one dtype, P.to(v.dtype)"
SIXTEEN_BITS = "O_acc is returned in 16 bits: m, l and O_acc stay in fp32, whatever q, k and v are in"
UNTOUCHED = 1e38  # lies around an output


class Out(NamedTuple):
    """Stands for an output of this shape, float32, which the launch is given to fill; strides are in elements."""

    shape: tuple
    strides: tuple | None = None

    def __repr__(self):
        return f"a tensor of shape {self.shape}{_apart(self)}, to be filled"


class Strided:
    """Stands for an input whose elements lie apart in memory, with nan between them; strides are in elements."""

    def __init__(self, array, strides):
        self.array, self.shape, self.strides = np.asarray(array), np.shape(array), strides

    def __array__(self, dtype=None, copy=None):
        return self.array.astype(dtype or self.array.dtype)

    def __len__(self):
        return len(self.array)

    def __repr__(self):
        return f"{show(self.array)}{_apart(self)}"


def _apart(x):
    return "" if x.strides is None else f" with the strides {x.strides}"


def strides_of(x):
    """Return the strides, in elements, that an Out, a Strided or an array has when it comes to the launch."""
    if not isinstance(x, np.ndarray) and x.strides is not None:
        return x.strides
    return tuple(int(np.prod(x.shape[axis + 1 :])) for axis in range(len(x.shape)))


def memory(x):
    """Return the memory of an input as a function of offsets from its first element; nan beside its elements."""
    flat = np.full(_extent(x), np.nan)
    flat[sum(stride * n for stride, n in zip(strides_of(x), np.indices(x.shape), strict=True))] = np.asarray(x)

    def load(offsets):
        inside = (offsets >= 0) & (offsets < len(flat))
        return np.where(inside, flat[np.where(inside, offsets, 0)], np.nan)

    return load


def _extent(x):
    """Return how many elements it is from the first to the last, both counted; x is not empty."""
    return 1 + sum((n - 1) * stride for n, stride in zip(x.shape, strides_of(x), strict=True))


def launched(answer):
    """Return answer as a function of arrays, Strideds, Outs and numbers that returns the filled outputs.

    One output is returned as it is, several as a tuple; without an Out, what the answer returns. float16 stays
    float16, other numbers are float32. Raises Finding if the launch wrote where it may not.
    """

    @wraps(answer)
    def run(*arguments):
        if _is_kernel(answer):
            raise Finding("a kernel was passed; pass the function that launches it")
        placed = [_Placed(x) for x in arguments]
        result = unwrapped(answer, *(p.tensor for p in placed))
        names = list(inspect.signature(answer).parameters)
        for finding in (_Placed.written_outside, _Placed.changed):
            for name, p in zip(names, placed, strict=False):
                if found := finding(p, name):
                    raise Finding(found)
        filled = tuple(p.tensor.cpu().numpy() for p in placed if p.is_output)
        if filled:
            return filled[0] if len(filled) == 1 else filled
        return result.detach().cpu().numpy() if isinstance(result, torch.Tensor) else result

    return run


def in_turn(answer, stages, mistakes, **options):
    """Return the Verdict of `examine` on the first list of cases in which something is wrong, or on all."""
    for cases in stages:
        verdict = examine(answer, cases, mistakes, **options)
        if not verdict.right:
            return verdict
    return replace(verdict, sentence=f"in all {sum(map(len, stages))} cases")


def unwrapped(f, *arguments):
    """Return f(*arguments) once the device is done; of an error of Triton's, raise the one it hides."""
    try:
        result = f(*arguments)
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        return result
    except Exception as error:
        while isinstance(error, triton.errors.TritonError) and error.__cause__ is not None:
            error = error.__cause__
        if "grid_idx" in str(error) or "scope of a kernel" in str(error):
            raise Finding("a kernel is called without a grid: kernel[grid](...)") from None
        raise error from None


class _Placed:
    """An argument as the launch gets it."""

    def __init__(self, x):
        self.is_output = isinstance(x, Out)
        self.memory, self.tensor = None, x
        if not isinstance(x, Out | Strided | np.ndarray):
            return
        self.extent = _extent(x)
        self.border = BORDER + self.extent
        dtype = torch.float32
        if not self.is_output and np.asarray(x).dtype == np.float16:
            dtype = torch.float16
        size, around = self.extent + 2 * self.border, UNTOUCHED if self.is_output else torch.nan
        self.memory = torch.full((size,), around, dtype=dtype, device=DEVICE)
        place = x.shape, strides_of(x), self.border
        self.tensor = self.memory.as_strided(*place)
        self.own = torch.zeros_like(self.memory, dtype=torch.bool)
        self.own.as_strided(*place).fill_(True)
        if self.is_output:
            self.tensor.fill_(torch.nan)
        else:
            self.tensor.copy_(torch.from_numpy(np.ascontiguousarray(np.asarray(x))))
            self.before = self.tensor.clone()

    def written_outside(self, name):
        """Return a sentence on what was written next to it, or ""."""
        if self.memory is None:
            return ""
        touched = self.memory != UNTOUCHED if self.is_output else ~self.memory.isnan()
        at = (touched & ~self.own).nonzero().flatten() - self.border
        if not len(at):
            return ""
        if self.is_output and self.tensor.isnan().any():
            return f"{name} is not filled, but memory beside its elements is: its offsets take its own strides"
        past = int((at >= self.extent).sum())
        if past == len(at):
            if past == 1:
                return f"1 element past the end of {name} is written: the mask lets one too many through"
            return f"{past} elements past the end of {name} are written: mask the store"
        if self.tensor.ndim > 1 and (at >= 0).all():
            return f"something is written between the rows of {name}, which lie apart: mask the store"
        return f"something is written outside {name}: mask the store"

    def changed(self, name):
        """Return a sentence if it is an input and was written to, or ""."""
        if self.memory is None or self.is_output:
            return ""
        same = torch.equal(self.tensor.nan_to_num(), self.before.nan_to_num())
        return "" if same else f"the input {name} is written to"


# --- tensors (B, H, N, d) ---


def heads(words, shape, exact, *others, dtype=np.float32, tolerance=1e-5, size=1, transposed=False) -> Case:
    """Return the Case of Q, K and V for a shape (B, H, N_q, N_k, d), and of others.

    exact: takes Q, K and V of a head in fp64, and others, and returns its O. size: how many times larger Q is.
    transposed: whether the tensors are stored as (B, N, H, d). Without a scale, scores are exact in fp32.
    """
    rng = np.random.default_rng(0)
    B, H, N_q, N_k, d = shape
    Q, K, V = (rng.integers(-6, 7, (B, H, N, d)) / 4 for N in (N_q, N_k, N_k))
    Q *= size
    O = [[exact(Q[b, h], K[b, h], V[b, h], *others) for h in range(H)] for b in range(B)]
    given = [X.astype(dtype) for X in (Q, K, V)]
    if transposed:
        given = [Strided(X, (X.shape[2] * H * d, d, H * d, 1)) for X in given]
    return Case(words, (*given, *others), np.array(O), tolerance)


def one_O(answer, names):
    """Return answer, a function with parameters of these names; raises Finding if it returns no O like Q."""

    def run(Q, *others):
        O = answer(Q, *others)
        if isinstance(O, tuple):
            raise Finding(f"returns {len(O)} values: return O alone")
        if getattr(O, "dtype", Q.dtype) != Q.dtype:
            raise Finding(f"O has the dtype {O.dtype}; expected {Q.dtype}, that of Q")
        return O

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    run.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    return run


# --- parts of kernels ---


def kernel_problem(answer):
    """Return the Verdict on what is no kernel, or none yet, or None."""
    if not _is_kernel(answer):
        name = getattr(answer, "__name__", "")
        plain = f"{name} is a plain function: a kernel, and what it calls, is marked @triton.jit"
        return Verdict("", "wrong", plain)
    if "NotImplementedError" in answer.fn.__code__.co_names:  # the compiler knows no exceptions
        return Verdict("", "not solved yet", "")
    return None


def part_problem(answer, outputs):
    """Return the Verdict on what is no function for a kernel that returns these outputs, or None."""
    if problem := kernel_problem(answer):
        return problem
    returned = [node.value for node in ast.walk(tree(answer)) if isinstance(node, ast.Return) and node.value]
    given = {len(value.elts) if isinstance(value, ast.Tuple) else len(outputs) for value in returned}
    if given == {len(outputs)}:
        return None
    what = f"{min(given)} values" if given else "nothing"
    return Verdict("", "wrong", f"returns {what}; expected the {len(outputs)} values {', '.join(outputs)}")


def rounds_dots(kernel):
    """Return whether a tl.dot of a kernel takes fp32 inputs in tf32 on a GPU, told by its source."""
    calls = [node for node in ast.walk(tree(kernel)) if isinstance(node, ast.Call)]
    dots = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "dot"]
    return not all({"input_precision", "allow_tf32"} & {word.arg for word in call.keywords} for call in dots)


def _is_kernel(answer):
    return type(answer).__name__ in ("JITFunction", "InterpretedFunction")


def tree(kernel):
    """Return the syntax tree of a kernel."""
    return ast.parse(textwrap.dedent(inspect.getsource(kernel.fn)))


def looped(answer):
    """Return a function of a row block and all of its keys that calls `answer` for each tile of B_c keys.

    answer: takes q, k, v, m, l, O_acc, visible and scale and returns m, l and O_acc; so does the function, of the
    last tile. Raises Finding if O_acc is not in fp32.
    """

    def run(Q_i, K, V, visible, scale, B_c):
        (B_r, d), N_k = Q_i.shape, len(K)
        q, k, v, seen = (torch.from_numpy(np.ascontiguousarray(X)).to(DEVICE) for X in (Q_i, K, V, visible))
        inputs = q, k, v, seen.to(torch.int8)
        return state_of(_loop_kernel, inputs, B_r, d, N_k, scale, answer, B_c)

    return run


def state_of(kernel, inputs, B_r, d, N_k, scale, answer, B_C):
    """Return m, l and O_acc that a kernel writes in one program."""
    m, l, in_fp32 = torch.full((3, B_r), torch.nan, device=DEVICE)
    O_acc = torch.full((B_r, d), torch.nan, device=DEVICE)
    arguments = *inputs, m, l, O_acc, in_fp32, N_k, scale, answer
    try:
        unwrapped(lambda: kernel[(1,)](*arguments, B_R=B_r, B_C=B_C, D=d))
    except Exception as error:
        if "same dtype" in str(error):
            raise Finding(DTYPES) from None
        if "Loop-carried variable" in str(error):  # so the compiler, of a state that changes its type
            raise Finding(SIXTEEN_BITS) from None
        raise
    if not in_fp32[0]:
        raise Finding(SIXTEEN_BITS)
    return tuple(X.cpu().numpy() for X in (m, l, O_acc))


@triton.jit
def _loop_kernel(
    Q_ptr, K_ptr, V_ptr, visible_ptr, m_ptr, l_ptr, O_ptr, in_fp32_ptr, N_k, scale, f: tl.constexpr,
    B_R: tl.constexpr, B_C: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    offs_m, offs_d = tl.arange(0, B_R), tl.arange(0, D)
    rows = offs_m[:, None] * D + offs_d[None, :]  # (B_R, D)
    q = tl.load(Q_ptr + rows)
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    O_acc = tl.zeros((B_R, D), tl.float32)
    for start in range(0, N_k, B_C):
        offs_n = start + tl.arange(0, B_C)
        cols = offs_n[:, None] * D + offs_d[None, :]  # (B_C, D)
        k = tl.load(K_ptr + cols)
        v = tl.load(V_ptr + cols)
        visible = tl.load(visible_ptr + offs_m[:, None] * N_k + offs_n[None, :]) != 0  # (B_R, B_C)
        m, l, O_acc = f(q, k, v, m, l, O_acc, visible, scale)
    tl.store(m_ptr + offs_m, m)
    tl.store(l_ptr + offs_m, l)
    tl.store(O_ptr + rows, O_acc)
    tl.store(in_fp32_ptr, 1.0 if O_acc.dtype == tl.float32 else 0.0)


def split(answer):
    """Return a function of sizes that gives what `answer`, for a kernel, returns for each row block: full, end.

    Where these bounds make the two loops of the mask, those of the mask are given in their place.
    """

    def run(N_q, N_k, B_r, B_c):
        T_r = triton.cdiv(N_q, B_r)
        bounds = torch.zeros((2, T_r), dtype=torch.int32, device=DEVICE)
        unwrapped(lambda: _split_kernel[(T_r,)](*bounds, N_q, N_k, answer, B_R=B_r, B_C=B_c))
        return same_loops(bounds.cpu().numpy(), N_q, N_k, B_r, B_c)

    return run


@cache
def split_of_mask(N_q, N_k, B_r, B_c):
    """Return full and end of each row block, found by looking at its tiles."""
    found = []
    for rows in tiled.blocks(N_q, B_r):
        full, end = 0, 0
        for cols in tiled.blocks(N_k, B_c):
            seen = tiled.is_visible(rows, cols, N_k - N_q)
            if seen.all() and seen.shape[1] == B_c:
                full = cols.stop
            if seen.any():
                end = cols.start + 1 + int(np.flatnonzero(seen.any(axis=0))[-1])
        found.append((full, end))
    return tuple(np.array(found).T)


def same_loops(bounds, *sizes):
    """Return full and end of each row block, replaced by those of the mask where both make the same two loops."""

    def loops(full, end):
        return *range(0, full, sizes[3]), None, *range(full, end, sizes[3])

    given, exact = np.transpose(bounds).astype(int), np.transpose(split_of_mask(*sizes))
    same = [loops(*a) == loops(*b) for a, b in zip(given, exact, strict=True)]
    return tuple(np.where(np.array(same)[:, None], exact, given).T)


@triton.jit
def _split_kernel(full_ptr, end_ptr, N_q, N_k, f: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr):
    i = tl.program_id(0)
    full, end = f(i, N_q, N_k, B_R, B_C)
    tl.store(full_ptr + i, full)
    tl.store(end_ptr + i, end)
