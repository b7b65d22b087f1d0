"""Decoding: attention of a few new queries of each sequence over its cache of keys and values.

A query reads every K and V once, so speed is bytes per second, and a kernel with one program per head leaves most
of the GPU idle. Here the keys are split over programs, see `decode_passes`. Nothing waits for the GPU, and the
launches depend only on the sizes of tensors: a CUDA graph that was captured once is right for any lengths.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl

from flashlib import masks, splits
from flashlib.inputs import check_causal, check_counts, check_tensors, resolve_scale
from flashlib.kernels import INTERPRETED
from flashlib.kernels.decode_passes import AFTER_O, FEW, Extras, _merge, _partial
from flashlib.kernels.forward import HEAD_DIMS, LOG2_E
from flashlib.kernels.launch import planning, tile_sizes
from flashlib.kernels.launch.cache_layout import Layout, check_cache, check_table, check_tensor
from flashlib.kernels.launch.inputs import (
    DTYPES,
    as_autocast,
    check_device,
    check_no_gradient,
    check_readable,
    kernel_input,
    on_device_of,
    sink_tensor,
    uncompiled,
)
from flashlib.kernels.launch.load_store import HeadDims
from flashlib.kernels.masking import biases
from flashlib.kernels.masking.device_side import Ancestors, MaskArgs, Masking, Variant
from flashlib.kernels.masking.pass_sizes import PassSizes
from flashlib.kernels.masking.prepare import hiding_and_changing
from flashlib.kernels.masking.score_changes import check_changes, score_changes
from flashlib.kernels.masking.score_tests import NO_TESTS, score_tests
from flashlib.masks import Mask
from flashlib.types import Attention

MOST_SEQUENCES = 4096  # every program reads all lengths
MOST_CANDIDATES = 32  # of a tree: one bit each
LONG = 4096  # keys of a sequence: starts and ends of programs hardly count
MERGES = 2  # programs of the merge on a multiprocessor, if few rows need one
MOST_PARTS = 2**15  # the product of two numbers of parts has 32 bits
COMPUTE = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32}


class CacheTensors(NamedTuple):
    """A cache as `attention` takes it."""

    K: torch.Tensor
    V: torch.Tensor
    lengths: torch.Tensor | None
    table: torch.Tensor | None
    k_scale: torch.Tensor | None
    v_scale: torch.Tensor | None

    def first(self) -> "CacheTensors":
        """Return the cache of sequence 0 alone, all of whose keys count."""
        if self.table is not None:
            return self._replace(lengths=None, table=self.table[:1])
        first: Any = (X if X is None else X[:1] for X in self)
        return CacheTensors(*first)._replace(lengths=None)


@uncompiled
def attention(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, lengths: torch.Tensor | None = None,
    table: torch.Tensor | None = None, *, causal: bool = False, mask: Mask | None = None,
    scale: float | None = None, sink: float | torch.Tensor | None = None, k_scale: torch.Tensor | None = None,
    v_scale: torch.Tensor | None = None, shared: int = 0, parts: int | None = None,
    padding: torch.Tensor | None = None, slopes: torch.Tensor | None = None,
) -> Attention:  # fmt: skip
    """Return softmax(Q K^T * scale) V and the log-sum-exp of each row, over a cache.

    Q: (B, H_q, N_q, d), float16, bfloat16 or float32: the few new queries of each sequence.
    K, V, lengths, table, k_scale, v_scale: the cache, contiguous or in pages, whose last tokens are the new ones:
    see `cache_layout.check_cache`. d and d_v from 16 to 256; H_q is a multiple of H_k (GQA; MQA if H_k = 1).
    Row i of sequence b has position r = lengths[b] - N_q + i. causal: it sees key c if c <= r. mask: window,
    prefix, tree, softcap, alibi, functions and scores that have a kernel, biases of keys and of distances for as
    many keys as the cache holds, and intersections of these.
    sink: None, a number, or one for each head, (H_q,), see `flashlib.sink`.
    shared: the first `shared` keys are the same in all sequences, such as a prompt, and none of them is new; they
    are read once, from sequence 0, and no sequence is shorter. A mask may then not depend on how far a key is from
    its query.
    padding: (B,), int32: how many keys of each sequence come before its first and are not seen (left padding);
    lengths, positions and distances count them. slopes: of ALiBi, (H_q,) or (B, H_q), fp32: at a distance of n a
    score is reduced by n times the slope, after the mask has changed it.
    parts: about how many parts the keys of one head are split into, in all sequences together; default: see
    `flashlib.splits`.
    O: (B, H_q, N_q, d_v), the dtype of Q; lse: (B, H_q, N_q), fp32. A row that sees no key gives O = 0 and
    lse = -inf.
    Lengths are not checked: more than the cache holds counts as all, less than 0 as 0. Wherever keys are read, a
    table on the CPU must name pages, or sequences, that exist; one on a GPU is not checked.
    Before a CUDA graph is captured, call this once with the same sizes; and keep the mask as long as the graph,
    since its numbers on the GPU are freed with it.
    Raises TypeError or ValueError for anything else, before any work.
    Source: Dao and others, Flash-Decoding (2023); Kwon and others, PagedAttention (2023); for `shared`, Juravsky
    and others, Hydragen (2024).
    """
    (Q,) = as_autocast(Q)
    cache = CacheTensors(K, V, lengths, table, k_scale, v_scale)
    plan = plan_of(Q, cache, causal, mask, sink, shared, parts, padding, slopes)
    check_no_gradient(Q=Q, K=K, V=V, **biases.tensors_by_name(mask))
    if sink is not None or k_scale is not None:
        others = {"sink": sink, "k_scale": k_scale, "v_scale": v_scale}
        check_no_gradient(**{name: X for name, X in others.items() if isinstance(X, torch.Tensor)})
    scale = resolve_scale(scale, Q.shape[-1])
    prior = None
    extras = None if padding is None and slopes is None else extras_of(padding, slopes)
    if plan.of_shared:
        prior = run(_as_one(Q), cache.first(), scale, plan.of_shared, dtype=torch.float32)
    return run(Q, cache, scale, plan, sink=sink, prior=prior, mask=mask, extras=extras)


def check(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, lengths: torch.Tensor | None = None,
    table: torch.Tensor | None = None, *, causal: bool = False, mask: Mask | None = None,
    scale: float | None = None, parts: int | None = None, padding: torch.Tensor | None = None,
    slopes: torch.Tensor | None = None,
) -> None:  # fmt: skip
    """Raise what `attention` raises for these, without any work: for callers that write to the cache first."""
    plan_of(Q, CacheTensors(K, V, lengths, table, None, None), causal, mask, None, 0, parts, padding, slopes)
    check_no_gradient(Q=Q, K=K, V=V, **biases.tensors_by_name(mask))
    resolve_scale(scale, Q.shape[-1])


def extras_of(padding: torch.Tensor | None, slopes: torch.Tensor | None) -> Extras:
    """Return padding and slopes as kernels take them."""
    stride = slopes.shape[1] if slopes is not None and slopes.ndim == 2 else 0
    padding, slopes = (X if X is None else X.detach().contiguous() for X in (padding, slopes))
    return Extras(padding, slopes, stride)


class DecodePlan(NamedTuple):
    """A call of `attention`, except its tensors and its scale.

    partial, merge: None if O has no elements; merge also if each sequence is one part. states: how many numbers
    the States of all parts take. rows: the shape of lse. like_q: whether O has the memory layout of Q. as_given:
    whether kernels read a call's tensors without a copy. of_shared: the plan for the keys that all sequences
    share, or None. layout: of the cache, None if nothing is read. left: how many keys before its own a row sees.
    tiles: how many a sequence has for `splits.chosen`.
    """

    partial: planning.Launch | None
    merge: planning.Launch | None
    rows: tuple[int, ...]
    states: int = 0
    like_q: bool = False
    as_given: bool = False
    of_shared: "DecodePlan | None" = None
    layout: Layout | None = None
    left: int = 0
    tiles: int = 0


PLANS = planning.PlansOfMasks()


def plan_of(
    Q: torch.Tensor, cache: CacheTensors, causal: bool, mask: Mask | None, sink: float | torch.Tensor | None,
    shared: int, parts: int | None, padding: torch.Tensor | None = None, slopes: torch.Tensor | None = None,
) -> DecodePlan:  # fmt: skip
    """Return the plan for these tensors; raise what `attention` raises, except about gradients."""
    plans = PLANS.of(mask)
    check_causal(causal)
    if type(shared) is not int or shared < 0:
        check_counts(shared=shared)
    if parts is not None:
        check_counts(at_least=1, parts=parts)
    shared, parts = int(shared), None if parts is None else int(parts)  # Triton takes no NumPy integer
    of_sink = sink if isinstance(sink, torch.Tensor) else None
    key = plans.key(
        (Q, *cache, of_sink, padding, slopes, *biases.tensors_read(mask)), bool(causal), shared, parts, type(sink)
    )
    found = plans.get(key) or plans.keep(
        key, _new_plan(Q, cache, causal, mask, sink, shared, parts, padding, slopes)
    )
    if cache.table is not None and cache.table.device.type == "cpu" and found.layout:
        _check_table(Q.shape[2], cache, found, shared, padding)
    return found


def _new_plan(Q, cache, causal, mask, sink, shared, parts, padding, slopes) -> DecodePlan:
    layout = _check(Q, cache, shared)
    _check_extras(Q, shared, padding, slopes)
    if sink is not None:
        check_readable(sink=sink_tensor(sink, Q))
    B, H, N_q = Q.shape[:3]
    hide, change = hiding_and_changing(masks.fitted(mask, causal, B, H, N_q, max(layout.capacity, N_q)))
    sees = _sees(hide, change, Q, layout.capacity)
    if padding is not None or slopes is not None:  # stand-ins: only which of them are present is compiled in
        sees = sees._replace(args=sees.args._replace(order=extras_of(padding, slopes)))
    found = _planned(Q, cache, layout, sees, shared, parts)
    if shared:
        if sees.far:
            raise ValueError(
                "shared keys and a mask that depends on how far a key is from its query: sequences of different "
                "lengths would see the keys differently; pass shared=0"
            )
        rows, whole = _as_one(Q), layout._replace(capacity=shared)
        alone = _sees((), change, rows, shared)  # masks that hide keys do not hide the shared ones
        found = found._replace(of_shared=_planned(rows, cache.first(), whole, alone, 0, parts))
    return found


def _check_table(N_q, cache, plan, shared, padding):
    """Raise ValueError if the kernels would read a page, or a sequence, that does not exist."""
    (page, capacity, _), K = plan.layout, cache.K
    full = torch.full((len(cache.table),), capacity, device=cache.table.device)
    ends = full if cache.lengths is None else cache.lengths.clamp(0, capacity)
    begins = (ends - N_q - plan.left).clamp(min=shared)
    if padding is not None:
        begins = begins.maximum(padding)
    if shared:  # read from the first sequence, however long it is
        begins[0], ends[0] = 0, ends[0].clamp(min=shared)
    check_table(cache.table, begins, ends, page or capacity, len(K))


def _as_one(Q):
    """Return the queries of all sequences as one sequence, (1, H_q, B N_q, d)."""
    B, H_q, N_q, d = Q.shape
    return Q.transpose(0, 1).reshape(1, H_q, B * N_q, d)


def _check(Q, cache, shared) -> Layout:
    """Return the layout of a cache; raise TypeError or ValueError unless kernels take it with these queries."""
    check_tensors(DTYPES, Q=Q)
    check_device(Q=Q)
    if Q.ndim != 4:
        raise ValueError(f"Q has shape {tuple(Q.shape)}; expected 4 axes (B, H, N, d)")
    layout = check_cache(Q, *cache)
    (B, H_q, _, d), H_k, d_v = Q.shape, cache.K.shape[1], cache.V.shape[3]
    for name, X in (("K", cache.K), ("V", cache.V)):
        if X.stride(3) != 1:
            raise ValueError(
                f"{name} has strides {X.stride()}; a cache is not copied: make its last axis contiguous"
            )
    check_readable(Q=Q, K=cache.K, V=cache.V, k_scale=cache.k_scale, v_scale=cache.v_scale)
    for name in ("k_scale", "v_scale"):
        if layout.fp8 and not getattr(cache, name).is_contiguous():
            raise ValueError(f"{name} is not contiguous: pass {name}.contiguous()")
    if cache.K.shape[3] != d:
        raise ValueError(f"Q has d = {d} and K {cache.K.shape[3]}; they must be equal")
    for name, n in (("d", d), ("d_v", d_v)):
        if n not in HEAD_DIMS:
            raise ValueError(f"{name} is {n}; the kernel takes 16 to 256: pad {'Q and K' if name == 'd' else 'V'}")
    if H_k == 0 or H_q % H_k:
        raise ValueError(f"Q has {H_q} heads and the cache has {H_k}; H_q must be a multiple of H_k")
    if B > MOST_SEQUENCES:
        raise ValueError(f"Q has {B} sequences; a call takes at most {MOST_SEQUENCES}: split the batch")
    if shared > layout.capacity:
        raise ValueError(f"shared is {shared}, and the cache holds {layout.capacity} tokens of a sequence")
    return layout


def _check_extras(Q, shared, padding, slopes):
    """Raise TypeError or ValueError unless padding and slopes fit Q."""
    B, H = Q.shape[:2]
    if padding is not None:
        check_tensor("padding", padding, (B,), "(B,)", torch.int32, Q=Q)
    if slopes is not None:
        own = isinstance(slopes, torch.Tensor) and slopes.ndim == 2
        check_tensor("slopes", slopes, (B, H) if own else (H,), "(H_q,) or (B, H_q)", torch.float32, Q=Q)
        check_no_gradient(slopes=slopes)
    if shared and not (padding is None and slopes is None):
        raise ValueError(
            "shared keys, and padding or slopes: sequences would see the shared keys differently; pass shared=0"
        )


class Sees(NamedTuple):
    """A mask as a kernel takes it: bounds around r, whether it has a tree, what is compiled in, and its numbers.

    far: whether anything depends on the distance from a query to its key.
    """

    left: int
    right: int
    tree: bool
    code: Masking
    args: MaskArgs
    far: bool


def _sees(hide, change, Q, capacity) -> Sees:
    """Return the parts of a mask as kernels take them; raise ValueError for a part that they do not support."""
    B, H, N_q, _ = Q.shape
    longest = max(capacity, N_q)  # rows may have any position
    place = masks.Place(longest, longest)
    check_changes(change, place, H)
    biases.check(change, Q, place)
    biases.check_rows(change, place, H, N_q)
    windows = [part for part in hide if (band := part.band()) and not band.prefix]
    trees = [part for part in hide if part.candidates() is not None]
    others = [part for part in hide if part not in windows and part not in trees]
    sized = [part for part in others if (test := part.device_test(place)) is None or test.sized]
    sized += [part for part in change if part.device_change(place, H).lines]
    for part in (*sized, *(part for part in (*hide, *change) if part.may_change)):
        raise ValueError(
            f"decoding takes no mask of {type(part).__name__.lower()}: it is prepared for sizes, and a cache "
            "grows; pass window, prefix, tree, softcap, alibi, or from_function(f, kernel=...)"
        )
    if len(trees) > 1 or (trees and N_q > MOST_CANDIDATES):
        raise ValueError(
            f"the mask has {len(trees)} trees and there are {N_q} candidates; decoding takes one tree of at most "
            f"{MOST_CANDIDATES}: propose fewer"
        )
    sizes = PassSizes(B, H, N_q, capacity, 1, 1, Q.device)
    tests = score_tests(others, sizes) if others else NO_TESTS
    scores = score_changes(change, sizes)
    band = masks.common_band(part.band() for part in windows) or masks.Band(None, None)
    left, right = (masks.FAR if n is None else min(n, masks.FAR) for n in (band.left, band.right))
    code = Masking(tl.constexpr(False), Variant(None, tests.functions, scores.functions))
    args = MaskArgs(
        bounds=_ancestors(trees[0], Q.device) if trees else None, seen=tests.numbers, scores=scores.numbers
    )
    far = left < masks.FAR or bool(others) or any(part.asks_positions for part in change)
    return Sees(left, right, bool(trees), code, args, far)


def _ancestors(tree, device) -> Ancestors:
    """Return the ancestors of each candidate as bits of an int32, (B, N_q) or (N_q,), and a sequence's stride."""
    ancestors = tree.candidates()
    N = ancestors.shape[-1]
    bits = (ancestors * (1 << np.arange(N))).sum(-1).astype("uint32").view("int32")
    return Ancestors(torch.from_numpy(bits).to(device), 0 if ancestors.ndim == 2 else N)


def _planned(Q, cache, layout, sees, shared, parts) -> DecodePlan:
    q, read = as_read(Q, cache)
    k, v = read.K, read.V
    (B, H, N_q, d), H_k, d_v = q.shape, k.shape[1], v.shape[3]
    if not B * H * N_q:
        return DecodePlan(None, None, (B, H, N_q))
    dims = HeadDims.of(d, d_v)
    compute = q.dtype
    if layout.fp8 and compute == torch.bfloat16:  # see `_in_units`
        compute = torch.float16
    args = sees.args._replace(order=None)  # sequences belong to a call, not to its plan
    scored = sees.code.scored.value or (sees.args.order is not None and sees.args.order.slopes is not None)
    simple = not (sees.tree or scored or sees.code.variant.seen)
    of_config = H // H_k * N_q, dims.widest, compute, k.element_size(), layout.page, q.device, simple
    config = _config(*of_config)
    blocks = H_k * triton.cdiv(H // H_k * N_q, config.B_R)
    seen = min(layout.capacity - shared, sees.left + N_q)  # of a sequence's keys
    gpu, tiles, full = tile_sizes.room(q.device), max(1, triton.cdiv(seen, config.B_C)), cache.lengths is None
    multiprocessors = gpu.multiprocessors or 8
    if parts is None:
        about = {"ragged": B > 1 and not full, "looks_up": bool(layout.page or layout.fp8), "full": full}
        parts = B * splits.chosen(tiles, B * blocks, multiprocessors, places=splits.places(config.B_R), **about)
    of_tiles = B * max(1, triton.cdiv(layout.capacity, config.B_C))
    parts = min(parts, of_tiles, MOST_PARTS)  # a part has at least one tile
    if parts <= B:  # most programs read a whole sequence
        in_turn = triton.cdiv(B * blocks, multiprocessors)
        config = _config(*of_config, beside=in_turn, keys=seen if full else 0)
    most, merging = _most_parts(B, N_q, layout.capacity, shared, sees.left, parts, config.B_C, full)
    unit, strides = planning.in_units(q, k, v)
    of_scales = (0, 0) if cache.k_scale is None else cache.k_scale.stride()[:2]
    table_stride = 0 if read.table is None else read.table.stride(0)
    about = layout.capacity, shared, sees.left
    D_V = dims.D_V.value
    early = gpu.tma and not INTERPRETED  # Hopper can launch a kernel before the last has ended
    pdl = {"launch_pdl": True} if early else {}
    pairs = layout.fp8 and compute == torch.float16 and d_v % 2 == 0 and D_V >= 32 and not INTERPRETED
    pairs = pairs and unit > 1 and v.data_ptr() % 2 == 0  # two numbers are read as one
    own = {"PAGE": layout.page, "PAIRS": pairs, "COMPUTE": COMPUTE[compute], "UNIT": unit}
    of_both = {"EARLY": early, "FINISH": not shared, "B_C": config.B_C, "B_P": triton.next_power_of_2(B)}
    partial = planning.Launch(
        _partial,
        most * blocks,
        (*strides, *of_scales, table_stride, B, H_k, H // H_k, N_q, *about, sees.right, parts, args),
        {"DIMS": dims, "B_R": config.B_R, "MASK": sees.code, "TREE": sees.tree} | own | of_both,
        {"num_warps": config.num_warps, "num_stages": config.num_stages} | pdl,
    )  # fmt: skip
    cols = splits.columns(B * H * N_q, D_V, multiprocessors)
    joined = min(max(4, triton.next_power_of_2(triton.cdiv(parts, B))), splits.states_at_once(cols))
    merges = B * H * N_q * (D_V // cols)
    if parts <= B and not shared:  # most sequences are one part, and have nothing to merge
        merges = min(merges, MERGES * multiprocessors)
    merge = planning.Launch(
        _merge,
        merges,
        (H * N_q * d_v, N_q * d_v, d_v, B, H, N_q, *about, parts),
        {"d_v": d_v, "D_V": D_V, "SCORED": scored, "COLS": cols, "JOINED": joined} | of_both,
        {"num_warps": 1 if joined * cols <= 2048 else 2} | pdl,  # one warp sums without waiting for another
    )
    states = most * H * N_q * (d_v + AFTER_O.value) if merging else 0
    as_given = all(X is Y for X, Y in zip((Q, *cache), (q, *read), strict=True))
    like_q = d_v == d and q.is_contiguous()
    return DecodePlan(
        partial, merge if merging else None, (B, H, N_q), states, like_q, as_given, layout=layout, left=sees.left,
        tiles=tiles,
    )  # fmt: skip


def _most_parts(B, N_q, capacity, shared, left, parts, B_C, full) -> tuple[int, bool]:
    """Return the most parts that all sequences can have together, and whether there is anything to merge."""
    if not full:
        return parts + B - 1, True
    first = max(capacity - N_q - left, shared) // B_C  # as in `_tiles`
    n = splits.actual_parts(max(triton.cdiv(capacity, B_C) - first, 1), parts, B)
    return n * B, n > 1 or shared > 0


def _config(R, D, dtype, itemsize, paged, device, simple, beside=0, keys=0):
    """Return tiles for R rows. simple: whether bounds alone decide what is seen, and scores are not changed.

    beside: how many programs, each of which reads a whole sequence, a multiprocessor gets in turn; 0: they read
    parts. keys: of a sequence, if all are full, else 0. A tile of many pages waits for its entries of the table,
    which take half of the stages.
    """
    gpu = tile_sizes.room(device)
    if dtype == torch.float32 or not gpu.tensor_cores:
        config = tile_sizes.Config(16, 32 if D <= 64 else 16, 4, 2)
    else:
        B_R = min(max(16, triton.next_power_of_2(R)), 64 if D <= 128 or gpu.tma else 32)
        if B_R == 32 and gpu.tma and itemsize > 1 and simple:  # else registers spill
            B_R = 64  # faster although half the rows are empty: wgmma reads K and V from shared memory
        B_C = (128 if itemsize == 1 else 64) // (1 if D <= 128 else 2)  # 64 in fp8 put too few bytes in flight
        warps = 8 if B_R * D > 64 * 128 or B_R == 32 else 4  # or registers spill
        config = tile_sizes.Config(B_R, B_C, warps, 3)
        if B_R == 16 and D <= 128 and gpu.tma:
            plain, steady = not paged and itemsize > 1, keys >= LONG if keys else beside == 2
            if beside and plain and steady:
                config = tile_sizes.Config(16, 64, 4, 4)
            elif beside > 2 or (beside == 2 and plain):  # small: while one starts or ends, the others read
                config = tile_sizes.Config(16, min(128, 8192 // (D * itemsize)), 2, 3)

    def taken(config):
        held = config.num_stages - (config.B_R < 64 or not gpu.tma)  # Hopper's wgmma reads a tile from there
        return (config.B_R + 2 * held * config.B_C) * D * itemsize + tile_sizes.BARRIERS

    config = tile_sizes.fitted(config, taken, gpu.shared)
    if paged and paged * FEW.value < config.B_C:
        config = config._replace(num_stages=2 * config.num_stages - 1)
    return config


def as_read(Q: torch.Tensor, cache: CacheTensors) -> tuple[torch.Tensor, CacheTensors]:
    """Return Q and a cache as kernels read them; the interpreter reads neither bfloat16 nor fp8."""

    def read(X):
        return X.float() if INTERPRETED and X.dtype not in COMPUTE else kernel_input(X)

    others = (X if X is None else kernel_input(X) for X in cache[2:])
    return kernel_input(Q), CacheTensors(read(cache.K), read(cache.V), *others)


def run(
    Q: torch.Tensor, cache: CacheTensors, scale: float, plan: DecodePlan, *,
    sink: float | torch.Tensor | None = None, prior: Attention | None = None, dtype: torch.dtype | None = None,
    mask: Mask | None = None, extras: Extras | None = None,
) -> Attention:  # fmt: skip
    """Do what `attention` does, by its plan; nothing is checked.

    prior: O in fp32 and lse for the shared keys. mask: its biases are read, if it has any.
    """
    q, (k, v, lengths, table, k_scale, v_scale) = (Q, cache) if plan.as_given else as_read(Q, cache)
    o = torch.empty_like(q, dtype=dtype) if plan.like_q else q.new_empty((*plan.rows, v.shape[3]), dtype=dtype)
    lse = q.new_empty(plan.rows, dtype=torch.float32)
    if plan.partial:
        states = q.new_empty(plan.states, dtype=torch.float32)
        if sink is not None:
            sink = kernel_input(sink_tensor(sink, Q).float().expand(q.shape[1]).contiguous())
        O_prior, lse_prior = prior or (None, None)
        scale_log2e = scale * LOG2_E.value
        with on_device_of(q):
            stream = planning.stream_of(q)
            own = plan.partial.sizes[-1]
            if mask is not None and mask.biased:
                own = biases.filled(own, map(biases.read, mask.biases))
            if extras is not None:
                own = own._replace(order=extras)
            alone = None if prior else sink, o, lse
            given = q, k, v, k_scale, v_scale, lengths, table, states, *alone, scale_log2e
            plan.partial(*given, mask_args=own, stream=stream)
            if plan.merge:
                plan.merge(states, O_prior, lse_prior, sink, lengths, o, lse, scale_log2e, stream=stream)
    return Attention(o if dtype or o.dtype == Q.dtype else o.to(Q.dtype), lse)
