"""FlashAttention-2, backward pass, in Triton: dQ, dK and dV, with P recomputed tile by tile from lse.

There are two ways. By default dK and dV have one pass and dQ another, each of which sums in registers and writes
once: `_dkv` holds K_j and V_j and streams Q and dO past them, `_dq` holds Q_i and dO_i and streams K and V.
Nothing depends on the order in which programs run, at the price of seven matrix products per tile. In the other
way `_dkv` does it all: it also multiplies each tile of dS by K_j and adds the product to dQ in HBM. These are five
products, and sums in whatever order programs run.

The kernels are in `backward_passes`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import triton

from flashlib.inputs import check_gradient_inputs, check_tensors, resolve_scale
from flashlib.kernels import INTERPRETED, bias_gradients
from flashlib.kernels.backward_passes import _delta, _dkv, _dq, _prepare
from flashlib.kernels.forward import HEAD_DIMS
from flashlib.kernels.launch import planning, tile_sizes
from flashlib.kernels.launch.inputs import (
    DTYPES,
    MAX_BLOCK,
    check_attention,
    check_deterministic,
    check_device,
    check_no_gradient,
    check_readable,
    kernel_dtype,
    kernel_input,
    on_device_of,
    ready,
    resolve_out_dtype,
    uncompiled,
)
from flashlib.kernels.launch.load_store import HeadDims
from flashlib.kernels.launch.planning import Launch
from flashlib.kernels.masking import biases, prepare
from flashlib.kernels.masking.device_side import MaskArgs, Masking
from flashlib.kernels.masking.pass_sizes import PassSizes
from flashlib.kernels.masking.sparsity import hides_all
from flashlib.masks import Mask
from flashlib.types import Grads

ROWS = 32  # for each program of `_prepare` and of `_delta`


@uncompiled
def backward(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor | None, lse: torch.Tensor, dO: torch.Tensor,
    *, dlse: torch.Tensor | None = None, delta: torch.Tensor | None = None, causal: bool = False,
    mask: Mask | None = None, scale: float | None = None, deterministic: bool = True, B_r: int | None = None,
    B_c: int | None = None, num_warps: int | None = None, num_stages: int | None = None,
    descriptors: bool | None = None, out_dtype: torch.dtype | None = None,
    d_bias: Sequence[torch.Tensor] | None = None,
) -> Grads:  # fmt: skip
    """Return the gradients of sum(dO * O) + sum(dlse * lse) with respect to Q, K and V.

    Q, K, V, causal, mask, scale, descriptors, CUDA graphs: as in `forward.attention`, which returned O and lse;
    by default small problems are loaded through pointers; in the interpreter, one pass takes no descriptors.
    dO: the shape, dtype and device of O. dlse: (B, H_q, N_q), fp32, as lse; None for zeros.
    dQ, dK, dV: the shape and dtype of Q, K and V; a head of K and V sums over the query heads that read it.
    Parts: if lse and O belong to whole rows, which see more keys than K has, the gradients are the share of these
    keys. dQ over all parts of the keys, and dK and dV over all parts of the rows, add up to those of the whole.
    delta: from `delta_of`, computed once for all parts; O is not read then, and may be None. out_dtype: of dQ, dK
    and dV, torch.float32 or None for the dtype of Q. Shares in 16 bits would lose digits with each part.
    d_bias: if the mask's changes of scores read tensors, an fp32 tensor of the same shape for each, to which its
    gradient is added in a separate pass, see `bias_gradients`; None: it is not computed.
    Scores may be up to 1e5 in size. Beyond that, an fp32 lse cannot hold log(l) next to m: the gradients stay
    finite, but their error grows with the size of the scores.
    deterministic: two passes, the same bits every time; else one pass that adds to dQ in HBM, in fp32, which
    torch.use_deterministic_algorithms forbids: RuntimeError, or a warning if it only warns.
    B_r, B_c, num_warps, num_stages: of each pass, as in `forward.attention`. Default: `tile_sizes.backward`.
    Raises TypeError or ValueError for anything else, before any work, and ValueError where the given tiles do
    not fit the GPU.
    Source: FlashAttention-2, Algorithm 2; the default replaces its additions to dQ by a pass for dQ.
    """
    check_deterministic(deterministic)
    asked = B_r, B_c, num_warps, num_stages, descriptors, out_dtype
    mask = prepare.mask_of_call(mask)
    wanted = d_bias is not None
    plan = plan_of(Q, K, V, O, lse, dO, dlse, causal, mask, deterministic, *asked, delta=delta, wanted=wanted)
    check_no_gradient(Q=Q, K=K, V=V, **biases.tensors_by_name(mask))
    if d_bias is not None:
        biases.check_gradients(mask, d_bias)
    found: list[torch.Tensor] = []
    scale = resolve_scale(scale, Q.shape[-1])
    grads = run(Q, K, V, O, lse, dO, dlse, scale, plan, delta=delta, mask=mask, d_bias=found)
    for X, dT in zip(d_bias or (), found, strict=True):
        X += dT
    return grads


@uncompiled
def delta_of(O: torch.Tensor, dO: torch.Tensor) -> torch.Tensor:
    """Return rowsum(dO * O), (B, H_q, N_q), fp32, which `backward` takes as delta for parts of these rows.

    O, dO: (B, H_q, N_q, d_v), both of one of the dtypes that `forward.attention` takes. Raises TypeError or
    ValueError for others.
    """
    key = DELTAS.key((O, dO))
    launch = DELTAS.get(key) or DELTAS.keep(key, _delta_launch(O, dO))
    check_no_gradient(O=O, dO=dO)
    o, do = kernel_input(O), kernel_input(dO)
    delta = o.new_empty(O.shape[:3], dtype=torch.float32)
    if delta.numel():
        with on_device_of(o):
            launch(o, do, delta)
    return delta


DELTAS = planning.Plans()  # the Launch of each


def _delta_launch(O, dO):
    """Return the Launch of `delta_of`; raise what it raises, except about gradients."""
    check_tensors(DTYPES, O=O, dO=dO)
    check_device(O=O)
    if O.ndim != 4 or O.shape != dO.shape:
        raise ValueError(
            f"O has shape {tuple(O.shape)} and dO {tuple(dO.shape)}; they must be equal, (B, H_q, N_q, d_v)"
        )
    check_readable(O=O, dO=dO)
    B, H, N, d = O.shape
    unit, strides = planning.in_units(kernel_input(O), kernel_input(dO))
    constants = {"d": d, "D": triton.next_power_of_2(d), "ROWS": ROWS, "UNIT": unit}
    return Launch(_delta, triton.cdiv(N, ROWS) * B * H, (*strides, H, N), constants, {})


class BackwardPlan(NamedTuple):
    """A call of `backward`, except its tensors and its scale. A launch is None if it has nothing to write.

    dq: None also if the pass for dK and dV adds to dQ. rows: the shape of lse2 and delta. ready: whether the
    kernels take the tensors as they are. out_dtype: of the gradients. hidden: whether no row sees a key.
    dbias: None unless gradients of the mask's biases are wanted. alike: whether the gradients have the strides of
    Q, K and V.
    """

    prepare: Launch | None
    dkv: Launch | None
    dq: Launch | None
    rows: tuple
    deterministic: bool
    descriptors: bool
    out_dtype: torch.dtype
    ready: bool
    hidden: bool = False
    dbias: bias_gradients.BiasGradientPlan | None = None
    alike: bool = False


PLANS = planning.PlansOfMasks()


def plan_of(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor | None, lse: torch.Tensor, dO: torch.Tensor,
    dlse: torch.Tensor | None, causal: bool, mask: Mask | None, deterministic: bool, *asked: Any,
    delta: torch.Tensor | None = None, wanted: bool = False,
) -> BackwardPlan:  # fmt: skip
    """Return the plan for these tensors; raise what `backward` raises, except about gradients.

    wanted: whether the gradients of the mask's biases are computed.
    """
    plans = PLANS.of(mask)
    key = plans.key(
        (Q, K, V, O, lse, dO, dlse, delta, *biases.tensors_read(mask)), causal, deterministic, *asked, wanted
    )
    if found := plans.get(key):
        return found
    check_attention(Q, K, V, causal, head_dims=HEAD_DIMS, grouped=True, differentiable=True, values=True)
    check_saved(Q, V, O, dO, lse, dlse, delta)
    check_readable(Q=Q, K=K, V=V, O=O, lse=lse, dO=dO, dlse=dlse, delta=delta)
    mask, causal = prepare.checked_mask(mask, bool(causal), Q, K)
    masking = functools.partial(prepare.prepared_mask, mask, causal)
    hidden = hides_all(mask, causal, Q.shape[2], K.shape[2])
    wanted = wanted and mask is not None and mask.biased
    options: Any = {"hidden": hidden, "wanted": wanted, "biased": mask is not None and mask.biased}
    return plans.keep(key, plan(Q, K, V, O, dO, causal, masking, deterministic, *asked, **options))


def check_saved(
    Q: torch.Tensor, V: torch.Tensor, O: torch.Tensor | None, dO: torch.Tensor, lse: torch.Tensor,
    dlse: torch.Tensor | None, delta: torch.Tensor | None = None,
) -> None:  # fmt: skip
    """Raise TypeError or ValueError unless these fit Q and V. O: None if delta is given."""
    others = {name: X for name, X in (("dlse", dlse), ("delta", delta)) if X is not None}
    if O is None and delta is None:
        raise TypeError("O is None; pass the O that attention(Q, K, V) returned, or delta=delta_of(O, dO)")
    check_tensors((Q.dtype,), Q=Q, **({} if O is None else {"O": O}), dO=dO)
    check_tensors((torch.float32,), lse=lse, **others)
    check_gradient_inputs(Q, O, lse, dO, torch.float32, V=V)
    for name, X in others.items():
        if X.shape != lse.shape:
            raise ValueError(f"{name} has shape {tuple(X.shape)} and lse {tuple(lse.shape)}; they must be equal")
    if lse.device != Q.device:
        raise ValueError(f"lse is on {lse.device} and Q on {Q.device}; move them to one device")


def plan(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor | None, dO: torch.Tensor, causal: bool,
    masking: Callable, deterministic: bool, B_r: int | None = None, B_c: int | None = None,
    num_warps: int | None = None, num_stages: int | None = None, descriptors: bool | None = None,
    out_dtype: torch.dtype | None = None, *, tokens_first: bool = False, hidden: bool = False,
    wanted: bool = False, biased: bool = False, drops: bool = False,
) -> BackwardPlan:  # fmt: skip
    """Return the plan for tensors that were checked. O: None if delta is given.

    masking, tokens_first: as in `forward.plan`. hidden: whether no row sees a key. wanted: as in `plan_of`.
    biased: whether scores read a tensor. drops: whether there is dropout.
    """
    asked = planning.launch_options(B_r, B_c, num_warps, num_stages)
    out_dtype = resolve_out_dtype(out_dtype, Q.dtype)
    O = dO if O is None else O  # if delta is given the kernel reads neither
    q, k, v, o, do = map(kernel_input, (Q, K, V, O, dO))
    worthwhile = q.numel() * k.shape[2] >= tile_sizes.SMALL
    descriptors = planning.resolve_descriptors(descriptors, q, k, v, do, worthwhile=worthwhile)
    if INTERPRETED and descriptors and not deterministic:
        raise ValueError(
            "descriptors=True with deterministic=False: Triton's interpreter does not support adding through a "
            "descriptor; leave descriptors out"
        )
    if hidden:
        return BackwardPlan(None, None, None, (), deterministic, descriptors, out_dtype, True, hidden)
    problem = BackwardInputs.of(q, k, causal, descriptors, masking, v.shape[3])
    of_tiles = problem.dims.widest, q.dtype, descriptors, q.device, biased, drops
    configs = tile_sizes.backward(*of_tiles, **asked)
    rows = max(ROWS, *(config.B_R for config in configs))
    problem = problem._replace(N_padded=-(-problem.N_q // rows) * rows, tokens_first=tokens_first)
    dbias = None
    if wanted:
        mask_args, code = problem.mask(q, configs.dq, transposed=False)
        options = problem.dims, code, configs.dq, descriptors, deterministic
        dbias = bias_gradients.plan(q, k, v, do, (*problem.sizes, mask_args), *options)
    return BackwardPlan(
        prepare_launch(o, do, problem),
        _dkv_launch(q, k, v, do, problem, configs.dkv if deterministic else configs.fused),
        dq_launch(q, k, v, do, problem, configs.dq) if deterministic else None,
        (*q.shape[:2], problem.N_padded),
        deterministic,
        descriptors,
        out_dtype,
        ready(Q, K, V, O, dO),
        dbias=dbias,
        alike=out_dtype == Q.dtype and planning.have_plain_strides(q, k, v),
    )


class BackwardInputs(NamedTuple):
    """A problem as the kernels take it.

    N_padded: N_q rounded up to a multiple of B_r, or of the largest one there is. tokens_first: the memory layout
    of the gradients, as in `planning.laid_out`.
    """

    H_k: int
    group: int
    N_q: int
    N_k: int
    N_padded: int
    dims: HeadDims
    causal: bool
    descriptors: bool
    masking: Callable | None
    tokens_first: bool = False

    @classmethod
    def of(
        cls, q: torch.Tensor, k: torch.Tensor, causal: bool, descriptors: bool, masking: Callable | None = None,
        d_v: int | None = None,
    ) -> "BackwardInputs":  # fmt: skip
        (H, N_q, d), (H_k, N_k) = q.shape[1:], k.shape[1:3]
        N_padded = -(-N_q // MAX_BLOCK) * MAX_BLOCK
        dims = HeadDims.of(d, d_v or d)
        return cls(H_k, H // max(H_k, 1), N_q, N_k, N_padded, dims, causal, descriptors, masking)

    @property
    def sizes(self) -> tuple:
        return self.H_k, self.group, self.N_q, self.N_k, self.N_padded

    def mask(
        self, q: torch.Tensor, config: tile_sizes.Config, transposed: bool
    ) -> tuple[MaskArgs | None, Masking]:
        """Return the mask's numbers for a pass, and the Masking that is compiled into it."""
        B, H = q.shape[:2]
        tiles = PassSizes(B, H, self.N_q, self.N_k, config.B_R, config.B_C, q.device, transposed)
        masking = self.masking or functools.partial(prepare.prepared_mask, None, self.causal)
        return masking(tiles)


def prepare_launch(o: torch.Tensor, do: torch.Tensor, problem: BackwardInputs) -> Launch | None:
    """Return the Launch that writes lse2 and delta when called as `prepared` does."""
    heads = o.shape[0] * o.shape[1]
    if not heads * problem.N_padded:
        return None
    unit, strides = planning.in_units(o, do)
    sizes = *strides, o.shape[1], problem.N_q, problem.N_padded
    constants = {"d": problem.dims.d_v.value, "D": problem.dims.D_V.value, "ROWS": ROWS, "UNIT": unit}
    return Launch(_prepare, problem.N_padded // ROWS * heads, sizes, constants, {})


def _dkv_launch(q, k, v, do, problem, config) -> Launch | None:
    """Return the Launch that writes dK and dV and, if dQ is not None, adds the unscaled dQ to it."""
    if not k.numel():
        return None
    grads = (planning.laid_out(X.shape, problem.tokens_first) for X in (k, v, q))
    unit, strides = planning.in_units(q, k, v, do, *grads)
    whole = problem.N_q > 0 and problem.N_k % config.B_C == 0
    short = problem.N_k <= tile_sizes.SHORT * config.B_C  # not worth a separate kernel
    mask_args, code = problem.mask(q, config, transposed=True)
    cut = code.causal.value or code.variant is not None or short or not whole
    grid = triton.cdiv(problem.N_k, config.B_C) * k.shape[0] * k.shape[1]
    constants = {"DIMS": problem.dims, "MASK": code, "DESCRIPTORS": problem.descriptors, "CUT": cut, "UNIT": unit}
    return Launch(_dkv, grid, (*strides, *problem.sizes, mask_args), constants, config._asdict())


def dq_launch(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, do: torch.Tensor, problem: BackwardInputs,
    config: tile_sizes.Config, in_registers: bool = True,
) -> Launch | None:  # fmt: skip
    """Return the Launch that writes dQ. in_registers: whether Q_i and dO_i stay there if d is at most 128."""
    if not q.numel():
        return None
    unit, strides = planning.in_units(q, k, v, do, planning.laid_out(q.shape, problem.tokens_first))
    grid = triton.cdiv(problem.N_q, config.B_R) * q.shape[0] * q.shape[1]
    mask_args, code = problem.mask(q, config, transposed=False)
    in_registers = in_registers and problem.dims.widest <= 128
    constants = {"DIMS": problem.dims, "MASK": code, "DESCRIPTORS": problem.descriptors, "UNIT": unit}
    constants["IN_REGISTERS"] = in_registers
    return Launch(_dq, grid, (*strides, *problem.sizes, mask_args), constants, config._asdict())


def described(
    launch: Launch, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, do: torch.Tensor,
    dq: torch.Tensor | None = None,
) -> tuple:  # fmt: skip
    """Return the tensors as a pass takes them: as they are, or their descriptors."""
    if not launch.constants["DESCRIPTORS"]:
        return q, k, v, do, dq
    rows, keys = launch.config["B_R"], launch.config["B_C"]
    D, D_V = launch.constants["DIMS"].D.value, launch.constants["DIMS"].D_V.value
    tiles = (q, rows, D), (k, keys, D), (v, keys, D_V), (do, rows, D_V), (dq, rows, D)
    return tuple(X if X is None else planning.describe(X, *tile) for X, *tile in tiles)


def run(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor | None, lse: torch.Tensor, dO: torch.Tensor,
    dlse: torch.Tensor | None, scale: float, plan: BackwardPlan,
    mask_args: tuple[MaskArgs | None, MaskArgs | None] = (None, None), delta: torch.Tensor | None = None,
    mask: Mask | None = None, d_bias: list[torch.Tensor] | None = None,
) -> Grads:  # fmt: skip
    """Do what `backward` does, by its plan; nothing is checked.

    mask_args, mask: as in `forward.run`, for both passes. d_bias: a list to which the gradients of the mask's
    biases are appended, fp32, if the plan has them.
    """
    contiguous: dict = {"memory_format": torch.contiguous_format}
    tensors_read = biases.tensors_read(mask)
    if plan.hidden:
        if d_bias is not None:
            d_bias += [torch.zeros_like(T, dtype=torch.float32) for T in tensors_read]
        return Grads(*(torch.zeros_like(X, dtype=plan.out_dtype, **contiguous) for X in (Q, K, V)))
    tensors = Q, K, V, dO if O is None else O, dO
    q, k, v, o, do = tensors if plan.ready else map(kernel_input, tensors)
    dtype = kernel_dtype(plan.out_dtype)
    if plan.alike:
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    else:
        dq, dk, dv = (torch.empty_like(X, dtype=dtype, **contiguous) for X in (q, k, v))
    with on_device_of(q):
        stream = planning.stream_of(q)
        rows = prepared(plan.prepare, o, do, lse, dlse, plan.rows, delta, stream)
        sums = None
        if not plan.deterministic:
            sums = dq.zero_() if dtype == torch.float32 else torch.zeros_like(q, dtype=torch.float32, **contiguous)
        if tensors_read:
            mask_args = _with_biases(plan, tensors_read)
        if plan.dkv:
            given = *described(plan.dkv, q, k, v, do, sums), *rows, dk, dv, scale
            plan.dkv(*given, mask_args=mask_args[0], stream=stream)
        if plan.dq:
            given = *described(plan.dq, q, k, v, do)[:4], *rows, dq, scale
            plan.dq(*given, mask_args=mask_args[1], stream=stream)
        if sums is not None:
            torch.mul(sums, scale, out=dq)
        if plan.dbias and d_bias is not None:
            given = q, k, v, do
            if plan.dbias.add:
                given = described(plan.dbias.add, q, k, v, do)[:4]
            d_bias += bias_gradients.run(plan.dbias, (*given, *rows), scale, tensors_read)
    return Grads(dq, dk, dv) if plan.ready else Grads(*(X.to(plan.out_dtype) for X in (dq, dk, dv)))


def _with_biases(plan, tensors):
    """Return the numbers of the mask for both passes, with pointers to what changes of scores read."""
    read = [biases.read(T) for T in tensors]
    return tuple(launch and biases.filled(launch.sizes[-1], read) for launch in (plan.dkv, plan.dq))


def prepared(
    launch: Launch | None, o: torch.Tensor, do: torch.Tensor, lse: torch.Tensor, dlse: torch.Tensor | None,
    shape: tuple[int, ...], sums: torch.Tensor | None = None, stream: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return lse2 and delta. sums: the result of `delta_of`; o and do are not read then. stream: see `Launch`."""
    lse2 = lse.new_empty(shape)
    delta = torch.empty_like(lse2)
    if launch:
        if sums is not None:
            o, do, sums = None, None, sums.contiguous()
        dlse = dlse if dlse is None else dlse.contiguous()
        launch(o, do, sums, lse.contiguous(), dlse, lse2, delta, stream=stream)
    return lse2, delta
