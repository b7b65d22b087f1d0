"""Runs a Gluon kernel on a CPU, which Triton's interpreter does not: the functions of its module as they are.

The Python functions behind `@gluon.jit` are called with other things under the names `gl`, `mbarrier`, `tma` and
`warpgroup_mma`. Tiles are torch tensors. Each role is a thread, of which one runs at a time; what it says to
barriers and units goes to the model in `flashlib.pipeline`, which raises Fault for what a kernel must never do. A
copy fills its slot when it completes, with NaN before, and a product reads its slots when it completes. So what
happens in between is any order that a GPU may take, chosen at random.

It says nothing about layouts, registers or speed.
"""

import functools
import math
import random
import types
from collections.abc import Sequence
from types import FunctionType, ModuleType
from typing import Any

import torch
from triton import JITFunction

from flashlib.inputs import check_causal, check_counts, check_shapes, check_tensors, resolve_scale
from flashlib.kernels.hopper import forward, launch
from flashlib.kernels.hopper.interpreter import gluon
from flashlib.kernels.hopper.interpreter.threads import Role
from flashlib.kernels.launch.inputs import check_no_gradient, check_powers_of_two, check_readable
from flashlib.pipeline import commands as c
from flashlib.pipeline.multiprocessor import State
from flashlib.pipeline.schedules import Chance, deadlock
from flashlib.types import Attention

NAMES = ("q", "q_full", "q_empty", "k", "k_full", "k_empty", "v", "v_full", "v_empty", "o", "turn")  # as `forward`


def play(gl: gluon.Gluon, kernel: FunctionType, arguments: dict) -> None:
    """Run a kernel and its roles, whoever chance picks next, until all have ended. Raises Fault."""
    played(gl, Role("warps", functools.partial(kernel, **arguments), ()), Chance(gl.numbers))


def played(gl: Any, alike: Role, order: Any) -> None:
    """Run a kernel, which is a role itself or starts others, until all have ended. Raises Fault.

    gl: has `roles`, `barriers`, `slots`, and `said`, which gets the commands of each. order: picks who goes next.
    """
    alike.start()
    try:
        alike.go_on()  # up to its first command; a kernel that names roles ends there
    except BaseException:
        alike.join()
        raise
    threads = {role.role: role for role in gl.roles or [alike]}
    state = State(
        c.Program({name: role.function for name, role in threads.items()}, tuple(gl.barriers), tuple(gl.slots)),
        list(threads),
    )
    for name, thread in threads.items():
        thread.state, gl.said[name] = state, []
    try:
        for role in gl.roles:
            role.start()
            role.go_on()
        _play(gl, threads, state, order)
    finally:
        for thread in threads.values():
            if thread.is_alive():
                thread.given_up = True
                thread.mine.release()
            if thread.ident is not None:  # it was started
                thread.join()


def _play(gl, threads, state, order):
    acts = {}
    while True:
        now = [role for role in threads.values() if role.command is not None]
        choices = [role for role in now if state.may(role.role, role.command)] + state.ready()
        if not choices:
            if now:
                for role in now:
                    gl.said[role.role].append(role.command)
                raise deadlock(state, {role.role: role.command for role in now})
            return
        chosen = order.pick(choices, _who)
        at = {role.role: role.command for role in now}
        if not isinstance(chosen, Role):
            acts.pop(chosen.number)()
            state.complete(chosen, at)
            continue
        gl.said[chosen.role].append(chosen.command)
        if flight := state.do(chosen.role, chosen.command, at):
            acts[flight.number] = chosen.act
        chosen.go_on()
        if chosen.command is None:
            state.end(chosen.role)
            if len(now) == 1:
                state.end_all()


def _who(choice):
    return choice.role if isinstance(choice, Role) else choice.number


def functions(gl: gluon.Gluon, module: ModuleType = forward) -> dict:
    """Return the functions of a module and of those it names, as plain Python over `gl`, a stub of Gluon."""
    constant = module.gl.constexpr
    world = {name: x.value if isinstance(x, constant) else x for name, x in vars(module).items()}
    world |= {
        "gl": gl, "mbarrier": gluon.MBarrier, "tma": gluon.TMA,
        "warpgroup_mma": gluon.warpgroup_mma, "warpgroup_mma_wait": gluon.warpgroup_mma_wait,
        "fence_async_shared": gluon.fence_async_shared,
        "async_add_shared_to_global": gluon.TMA.async_add_shared_to_global,
    }  # fmt: skip
    for name, value in vars(module).items():
        if isinstance(value, types.ModuleType) and value.__name__.startswith("flashlib.") and _kernels(value):
            world[name] = types.SimpleNamespace(**functions(gl, value))
        if isinstance(value, JITFunction):
            plain = value.fn
            world[name] = types.FunctionType(plain.__code__, world, name, plain.__defaults__, plain.__closure__)
    return world


def _kernels(module):
    return [name for name, value in vars(module).items() if isinstance(value, JITFunction)]


def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, *, causal: bool = False, scale: float | None = None,
    out_dtype: torch.dtype | None = None, consumers: int = 2, stages: int = 2, B_c: int = 128, seed: int = 0,
) -> Attention:  # fmt: skip
    """Return O and lse of the kernel's own code, each program under one random schedule.

    Q, K, V, causal, scale, out_dtype, O, lse: as `forward.attention` takes and returns them, in the computer's
    memory. consumers: 2 or 3; stages: slots of each ring, at least 2; B_c: 64 or 128 keys in a tile.
    Raises TypeError or ValueError for anything else, and Fault for what a kernel must never do.
    """
    check_tensors(tuple(launch.DTYPES), Q=Q, K=K, V=V)
    check_shapes(Q, K, V, axes="(B, H, N, d)", grouped=True)
    check_no_gradient(Q=Q, K=K, V=V)
    check_readable(Q=Q, K=K, V=V)
    check_causal(causal)
    if Q.shape[-1] not in launch.HEAD_DIMS or consumers not in (2, 3) or not Q.numel() or not K.numel():
        raise ValueError(
            f"Q is {tuple(Q.shape)}, K {tuple(K.shape)}, consumers {consumers!r}; d is one of {launch.HEAD_DIMS}, "
            "there are 2 or 3 consumers, and no size is 0"
        )
    check_powers_of_two(64, 128, B_c=B_c)
    check_counts(at_least=2, stages=stages)
    scale, out_dtype = resolve_scale(scale, Q.shape[-1]), launch.dtype_of_O(out_dtype, Q)
    return run(Q, K, V, causal, scale, consumers, stages, B_c, None, 1, seed, out_dtype=out_dtype)[0]


def run(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, scale: float | None, consumers: int,
    stages: int, B_c: int, programs: int | None, section: int, seed: int, module: ModuleType = forward,
    rows: int = 64, names: Sequence[str] = NAMES, out_dtype: torch.dtype | None = None,
) -> tuple[Attention, list[dict[str, list]]]:  # fmt: skip
    """Return what `attention` returns, and the commands that each role of each program gave.

    module: where the kernel is, the function whose name begins with _; rows: of one consumer; names: for what the
    kernel allocates, in order.
    """
    B, H, N_q, d = Q.shape
    N_k = K.shape[2]
    scale_log2e = (d**-0.5 if scale is None else scale) * math.log2(math.e)
    above = 2.0 ** math.ceil(math.log2(scale_log2e))
    O, lse = torch.full_like(Q, math.nan, dtype=out_dtype), Q.new_full((B, H, N_q), math.nan, dtype=torch.float32)
    T_r = -(-N_q // (rows * consumers))
    n_tiles, numbers, said = B * H * T_r, random.Random(seed), []
    described = (("q_desc", Q, rows), ("k_desc", K, B_c), ("v_desc", V, B_c), ("o_desc", O, rows))
    given: dict = {name: gluon.Descriptor(name, X, n) for name, X, n in described}
    given |= {
        "lse_ptr": gluon.Pointer(lse), "scale_log2e": scale_log2e,
        "scale_above": above, "H": H, "group": H // K.shape[1], "N_q": N_q, "N_k": N_k, "T_r": T_r,
        "section": section, "n_tiles": n_tiles,
        "B_R": rows * consumers, "CONSUMERS": consumers, "STAGES": stages, "CAUSAL": causal,
        "TURNS": True,
    }  # fmt: skip
    (kernel,) = (name for name in _kernels(module) if name.startswith("_"))
    arguments = {name: given[name] for name in vars(module)[kernel].arg_names}
    programs = n_tiles if programs is None else programs
    for number in range(programs):
        gl = gluon.Gluon(number, programs, numbers, names)
        play(gl, functions(gl, module)[kernel], arguments)
        said.append(gl.said)
    return Attention(O, lse), said
