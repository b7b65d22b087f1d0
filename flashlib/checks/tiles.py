"""Kernels that call parts of kernels written in answers: an update in base 2, and a loop over all keys.

As in `launches`, which has the other parts: what an answer does not set comes out as nan, and nan lies around K
and V, so that what reads too far shows it.
"""

# ruff: noqa: I001  flashlib.kernels before triton
import ast

import numpy as np
import torch

from flashlib.checks.launches import state_of, tree
from flashlib.kernels import DEVICE
import triton
import triton.language as tl

POISON = 64  # rows of nan before and after K and V


def updates_in_base_2(answer):
    """Return a function of all scores of a row block that calls `answer` for each tile of B_C keys.

    answer: takes S, m, l, O_acc, v and scale_log2e and returns m, l and O_acc; so does the function, of the last
    tile. Raises Finding if O_acc is not in fp32.
    """

    def run(S, V, scale_log2e, B_C):
        tensors = [torch.from_numpy(np.ascontiguousarray(X)).to(DEVICE) for X in (S, V)]
        return state_of(_update_kernel, tensors, len(S), V.shape[1], S.shape[1], scale_log2e, answer, B_C)

    return run


def over_all_keys(answer):
    """Return a function of Q_i and of all K and V that calls `answer` once, for all keys.

    answer: takes q, pointers to K and V, m, l, O_acc, N_k, scale_log2e, an update, D and B_C, and returns m, l and
    O_acc; so does the function. Raises Finding if O_acc is not in fp32.
    """

    def run(q, K, V, scale_log2e, B_C):
        Q_i = torch.from_numpy(np.ascontiguousarray(q)).to(DEVICE)
        return state_of(
            _loop_kernel, (Q_i, _poisoned(K), _poisoned(V)), *q.shape, len(K), scale_log2e, answer, B_C
        )

    return run


def always_masks(kernel):
    """Return whether a kernel masks the loads of each of its loops, without a choice, told by its source."""
    loops = [node for node in ast.walk(tree(kernel)) if isinstance(node, ast.For | ast.While)]
    if not loops or _calls_others(kernel):
        return False
    return all(
        any(map(_masked, _loads(loop))) and not any(isinstance(n, ast.If | ast.IfExp) for n in ast.walk(loop))
        for loop in loops
    )


def masks_one_load(kernel):
    """Return whether one load alone of a kernel has a mask, and no offsets are kept inside, told by its source."""
    names = [call.func.attr for call in _calls(tree(kernel)) if isinstance(call.func, ast.Attribute)]
    bounded = {"minimum", "clamp"} & set(names) or names.count("where") > 1 or _calls_others(kernel)
    return not bounded and count_masked_loads(kernel) == 1


def reads_unmasked(kernel):
    """Return whether a load of a kernel has no mask, and no offsets are kept inside, told by its source."""
    names = {call.func.attr for call in _calls(tree(kernel)) if isinstance(call.func, ast.Attribute)}
    bounded = {"minimum", "clamp", "where", "make_block_ptr", "make_tensor_descriptor"} & names
    return not (bounded or _calls_others(kernel) or masks_all_loads(kernel))


def count_masked_loads(kernel):
    """Return how many loads of a kernel have a mask, told by its source."""
    return sum(map(_masked, _loads(tree(kernel))))


def masks_all_loads(kernel):
    """Return whether each load of a kernel has a mask, told by its source."""
    return all(map(_masked, _loads(tree(kernel))))


def _calls(node):
    return [call for call in ast.walk(node) if isinstance(call, ast.Call)]


def _calls_others(kernel):
    """Return whether it calls functions other than Triton's, its own update, range and float."""
    named = {call.func.id for call in _calls(tree(kernel)) if isinstance(call.func, ast.Name)}
    return bool(named - {"update", "range", "float"})


def _loads(node):
    return [c for c in _calls(node) if isinstance(c.func, ast.Attribute) and c.func.attr == "load"]


def _masked(load):
    return len(load.args) > 1 or "mask" in {word.arg for word in load.keywords}


def _poisoned(X):
    """Return the rows of X as a tensor, before and after which nan lies in memory."""
    rows = np.full((len(X) + 2 * POISON, X.shape[1]), np.nan, X.dtype)
    rows[POISON : POISON + len(X)] = X
    return torch.from_numpy(rows).to(DEVICE)[POISON:]


@triton.jit
def _update_kernel(
    S_ptr, V_ptr, m_ptr, l_ptr, O_ptr, in_fp32_ptr, N_k, scale_log2e, f: tl.constexpr,
    B_R: tl.constexpr, B_C: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    offs_m, offs_d = tl.arange(0, B_R), tl.arange(0, D)
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    O_acc = tl.zeros((B_R, D), tl.float32)
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
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    O_acc = tl.zeros((B_R, D), tl.float32)
    m, l, O_acc = f(q, K_ptr, V_ptr, m, l, O_acc, N_k, scale_log2e, _update, D, B_C)
    _store(m, l, O_acc, m_ptr, l_ptr, O_ptr, in_fp32_ptr, B_R, D)


@triton.jit
def _store(m, l, O_acc, m_ptr, l_ptr, O_ptr, in_fp32_ptr, B_R: tl.constexpr, D: tl.constexpr):
    offs_m = tl.arange(0, B_R)
    tl.store(m_ptr + offs_m, m)
    tl.store(l_ptr + offs_m, l)
    tl.store(O_ptr + offs_m[:, None] * D + tl.arange(0, D)[None, :], O_acc)
    tl.store(in_fp32_ptr, 1.0 if O_acc.dtype == tl.float32 else 0.0)


@triton.jit
def _update(S, m, l, O_acc, v, scale_log2e):
    m_old = m
    m = tl.maximum(m_old, tl.max(S, axis=1) * scale_log2e)
    alpha = tl.exp2(m_old - m)
    P = tl.exp2(S * scale_log2e - m[:, None])
    l = alpha * l + tl.sum(P, axis=1)
    O_acc = alpha[:, None] * O_acc + tl.dot(P.to(v.dtype), v, input_precision="ieee")
    return m, l, O_acc
