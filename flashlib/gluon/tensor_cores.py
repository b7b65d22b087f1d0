"""Products of tiles on the tensor cores: `warpgroup_mma`, which reads its slots when it completes."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from triton.experimental.gluon import language as real

from flashlib.gluon.memory import View
from flashlib.gluon.refused import Wrong
from flashlib.gluon.threads import current, say
from flashlib.gluon.tile import Begun, Tile, common, told
from flashlib.pipeline import commands as c
from flashlib.pipeline.multiprocessor import PipelineFault, PipelineFaultKind


def warpgroup_mma(
    a: Any, b: View, acc: Any, *, use_acc: bool = True, precision: str | None = None,
    max_num_imprecise_acc: int | None = None, is_async: bool = False,
) -> Any:  # fmt: skip
    """Begin a product of tiles; if not asynchronous, also wait for it."""
    _check_product(a, b, acc)
    begun, role, slots = (
        Begun(acc.layout, tuple(acc.type.shape)),
        current(),
        [x for x in (a, b) if type(x) is View],
    )

    def done():
        added = acc.result if isinstance(acc, Begun) else acc
        left, right = (x.data.to(added.dtype) for x in (a, b))
        begun.result = Tile(left @ right + (added.data if use_acc else 0), acc.layout)

    role.products.append(begun)
    role.sums[use_acc] = max(role.sums[use_acc], math.prod(acc.type.shape))
    held = tuple((slot.part, slot.held()) for slot in slots)
    name = f"{_sign(a)} x {_sign(b)} #{len(role.products)}"
    say(c.Product(name, held, 2 * math.prod(acc.type.shape) * a.shape[1]), done)
    return begun if is_async else warpgroup_mma_wait(0, (begun,))


def _sign(x):
    return str(x) if isinstance(x, View) else "registers"


def _check_product(a, b, acc):
    """Raise Wrong for operands that `wgmma` does not support."""
    common(a)
    if not isinstance(b, View):
        raise Wrong("right_operand", given=type(b).__name__)
    layout = acc.layout
    if not isinstance(layout, real.NVMMADistributedLayout):
        raise Wrong("accumulator", layout=told(layout))
    if isinstance(acc, Tile) and acc.dtype != (torch.int32 if b.dtype == torch.int8 else torch.float32):
        raise Wrong("sum_dtype", given=acc.dtype)
    if a.dtype != b.dtype:  # before the layout, which depends on it
        raise Wrong("operand_dtypes", one=a.dtype, other=b.dtype)
    if isinstance(a, Tile):
        wanted = real.DotOperandLayout(operand_index=0, parent=layout, k_width=4 // a.dtype.itemsize)
        if a.layout != wanted:
            raise Wrong("operand", layout=told(a.layout), wanted=told(wanted))
    for one in (a, b):
        if len(one.shape) != 2:
            raise Wrong("no_matrix", name=_sign(one), shape=one.shape, n=len(one.shape))
    shapes = a.shape, b.shape, list(acc.type.shape)
    if a.shape[1] != b.shape[0] or shapes[2] != [a.shape[0], b.shape[1]]:
        raise Wrong("shapes", one=shapes[0], other=shapes[1], sum=shapes[2])
    if layout.instr_shape[1] > shapes[2][1]:
        raise Wrong("instruction", given=layout.instr_shape[1], columns=shapes[2][1])


def warpgroup_mma_wait(num_outstanding: int = 0, deps: Sequence = ()) -> Any:
    """Wait until at most this many products are in flight; return the tiles of deps."""
    if isinstance(deps, Begun | Tile):
        raise Wrong("deps")
    say(c.Finish(int(num_outstanding)))
    thread = current()
    may_run = thread.products[max(0, len(thread.products) - num_outstanding) :] if num_outstanding else []
    if any(one is other for one in deps for other in may_run):
        said = f"{thread.role} uses a product that may not be done: {num_outstanding} may be in flight"
        raise PipelineFault(PipelineFaultKind.REGISTERS, thread.role, said)
    found = tuple(one.result if isinstance(one, Begun) else one for one in deps)
    return found[0] if len(found) == 1 else found
