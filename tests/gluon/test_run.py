"""Kernels in Gluon of any author: run as they are launched, with layouts, over stubs of Gluon's own names."""

import pytest
import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from flashlib.gluon import Wrong, taken
from flashlib.gluon.language import Language
from flashlib.gluon.run import first_and_last
from flashlib.gluon.tile import Tile, common

ROW = gl.constexpr(gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0]))


@gluon.jit
def sum_of(tile):
    rows, cols = gl.arange(0, 64, gl.SliceLayout(1, ROW)), gl.arange(0, 64, gl.SliceLayout(0, ROW))
    weights = rows[:, None] + 2 * cols[None, :]  # so that it matters where a number lies
    return gl.sum(gl.sum(tile.load(ROW).to(gl.float32) * weights, 1), 0)


@gluon.jit
def one_copy(desc, out_ptr, row, col, n_bytes):
    tile = gl.allocate_shared_memory(desc.dtype, desc.block_type.shape, desc.layout)
    full = mbarrier.allocate_mbarrier()
    mbarrier.init(full, count=1)
    fence_async_shared()
    mbarrier.expect(full, n_bytes)
    tma.async_copy_global_to_shared(desc, [row, col], full, tile)
    mbarrier.wait(full, 0)
    gl.store(out_ptr + gl.program_id(0), sum_of(tile))


@gluon.jit
def through_the_module(desc, out_ptr):
    slots = gl.allocate_shared_memory(desc.dtype, [2, 64, 64], desc.layout)
    full = hopper.mbarrier.allocate_mbarrier(batch=2)
    for s in gl.static_range(2):
        hopper.mbarrier.init(full.index(s), count=1)
    hopper.fence_async_shared()
    for s in gl.static_range(2):
        hopper.mbarrier.expect(full.index(s), desc.block_type.nbytes)
        hopper.tma.async_copy_global_to_shared(
            tensor_desc=desc, coord=[s * 64, 0], barrier=full.index(s), result=slots.index(s)
        )
    for s in gl.static_range(2):
        hopper.mbarrier.wait(full.index(s), 0)
        gl.store(out_ptr + s, sum_of(slots.index(s)))


@gluon.jit
def first_rows(x_ptr, out_ptr, n, HOW: gl.constexpr):
    at = gl.arange(0, 32, gl.BlockedLayout([1], [32], [4], [0]))
    if HOW == "other":
        x = gl.load(x_ptr + at, mask=at < n, other=0)
    else:
        x = gl.load(x_ptr + at, mask=at < n)
    gl.store(out_ptr + at, x)


@gluon.jit
def counts(x_ptr, out_ptr, n):
    at = gl.arange(0, 32, gl.BlockedLayout([1], [32], [4], [0]))
    gl.atomic_add(out_ptr + gl.load(x_ptr + at), at, mask=at < n)


def described(X):
    return TensorDescriptor.from_tensor(X, [64, 64], gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16))


def run(launch):
    ran = []
    with taken(lambda *noted: None, ran):
        launch()
    return ran


def weighed(X, row, col=0):
    """Return the weighted sum of a tile of X that begins there: 0 where X has no number."""
    wide = torch.nn.functional.pad(X.float(), [128] * 4)[row + 128 :, col + 128 :][:64, :64]
    return (wide * (torch.arange(64)[:, None] + 2 * torch.arange(64))).sum()


@pytest.mark.parametrize("row, col", [(0, 0), (37, -9), (90, 0), (100, 30), (-20, 48)])
def test_a_copy_fills_zeros_past_the_ends(row, col):
    X, out = torch.randint(-3, 4, (97, 72)).half(), torch.full((1,), torch.nan)
    (ran,) = run(lambda: one_copy[(1,)](described(X), out, row, col, 8192, num_warps=4))
    assert ran.fault is None and out[0] == weighed(X, row, col)
    assert [slot.name for slot in ran.slots] == ["tile"] and [b.name for b in ran.barriers] == ["full"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32])
def test_a_load_without_other_has_no_zeros_where_its_mask_hides(dtype):
    X = torch.arange(1, 33).to(dtype)
    out, bare = torch.zeros(2, 32, dtype=dtype)
    run(lambda: first_rows[(1,)](X, out, 20, "other", num_warps=4))
    run(lambda: first_rows[(1,)](X, bare, 20, "", num_warps=4))
    assert torch.equal(out[:20], X[:20]) and not out[20:].any() and torch.equal(bare[:20], X[:20])
    assert bare[20:].isnan().all() if dtype.is_floating_point else (bare[20:] > len(X)).all()


def test_additions_to_one_place_add_up():
    X, out = torch.arange(32) % 5, torch.ones(5, dtype=torch.int64)
    run(lambda: counts[(2,)](X, out, 23, num_warps=4))
    assert out.tolist() == [1 + 2 * sum(range(k, 23, 5)) for k in range(5)], "by two programs, each run once"


def test_each_of_two_roles_goes_first_in_one_of_two_orders():
    assert [order.pick(["first", "second"], str) for order in first_and_last()] == ["first", "second"]


def test_names_of_the_module_work_too():
    X, out = torch.randint(-3, 4, (128, 64)).half(), torch.full((2,), torch.nan)
    (ran,) = run(lambda: through_the_module[(1,)](described(X), out))
    assert out.tolist() == [weighed(X, 0), weighed(X, 64)]
    assert [slot.name for slot in ran.slots] == ["slots[0]", "slots[1]"]


@pytest.mark.parametrize("n_bytes", [4096, 16384])
def test_other_bytes_end_in_a_deadlock(n_bytes):
    X, out = torch.zeros(64, 64).half(), torch.zeros(3)
    (ran,) = run(lambda: one_copy[(3,)](described(X), out, 0, 0, n_bytes))
    assert ran.fault.kind == "deadlock" and ran.number == (0, 0, 0), "the first program that fails is the last"


def test_a_launch_of_triton_is_left_alone_and_so_is_gluon_afterwards():
    with pytest.raises(Exception, match="driver|GPU|CUDA|active"):
        one_copy[(1,)](described(torch.zeros(64, 64).half()), torch.zeros(1), 0, 0, 8192)


def producer():
    pass


def consumer():
    pass


@pytest.mark.parametrize("warps, others, registers, of_first", [
    (4, [4, 8], [40, 100], 4 * 128 - 40 - 2 * 100),
    (8, [4, 8], [40, 100], (5 * 96 - 40 - 2 * 100) // 2),  # a role of eight warps takes its number twice
    (4, [4, 1], [200, 200], 104),  # as the compiler says: three times 168, not a third of all registers
    (4, [4, 1], [256, 256], 0),
])  # fmt: skip
def test_the_first_role_has_the_registers_that_the_others_leave(warps, others, registers, of_first):
    language = Language((0,), (1,), producer.__code__, warps)
    language.warp_specialize([(producer, ()), (consumer, ()), (consumer, ())], others, registers)
    given = dict(zip(("consumer 0", "consumer 1"), registers, strict=True))
    assert language.registers == {"producer": of_first} | given


ACC = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
BY_ROW, BY_COLUMN = gl.SliceLayout(1, ACC), gl.SliceLayout(0, ACC)


def tile(*shape, layout):
    return Tile(torch.ones(shape), layout)


def test_tiles_of_one_layout_can_be_combined_and_others_cannot():
    S, m = tile(64, 64, layout=ACC), tile(64, layout=BY_ROW)
    assert (S - m[:, None]).layout == ACC and (2 * S + 1 > 0).layout == ACC
    for wrong, id in (
        (lambda: S + tile(64, 64, layout=ROW.value), "layouts"),
        (lambda: m[None, :], "no_slice"),
        (lambda: S[:, None], "no_slice"),
        (lambda: S[0:3], "index"),
        (lambda: bool(S > 0), "tile_in_if"),
        (lambda: m + tile(64, layout=BY_COLUMN), "layouts"),
    ):
        with pytest.raises(Wrong) as found:
            wrong()
        assert found.value.id == id


def test_a_tile_whose_layout_the_compiler_chooses_combines_with_any():
    assert common(tile(8, layout=None), tile(8, layout=BY_ROW)) == BY_ROW
    assert tile(64, 64, layout=ACC).reshape(64, 8, 8).layout is None


@gluon.jit
def divides(out_ptr, n, N: gl.constexpr):
    gl.store(out_ptr, n // 4)
    gl.store(out_ptr + 1, n % 4)
    gl.store(out_ptr + 2, (5 - n) // -4)
    gl.store(out_ptr + 3, N // 4)  # known at compile time: by Python
    gl.store(out_ptr + 4, gl.cdiv(n, 4))
    gl.store(out_ptr + 5, (gl.minimum(n, 3) - 1) // 4)
    for g in range(2):
        gl.store(out_ptr + 6 + g, (g - 6) // 4)
    rows = gl.arange(0, 8, layout=gl.SliceLayout(1, ROW))
    gl.store(out_ptr + 8 + rows, (rows + n) // 4)
    gl.store(out_ptr + 16 + rows, (rows + n) % 4)


@pytest.mark.parametrize("n", [-7, -4, -1, 0, 5])
def test_integers_are_divided_towards_zero(n):
    out = torch.full((24,), 99, dtype=torch.int32)
    run(lambda: divides[(1,)](out, n, N=n, num_warps=4))
    quotients = [int(x / 4) for x in range(n, n + 8)]
    rests = [x - 4 * quotient for x, quotient in zip(range(n, n + 8), quotients, strict=True)]
    singles = [int(n / 4), rests[0], int((5 - n) / -4), n // 4, int((n + 3) / 4), int((min(n, 3) - 1) / 4)]
    assert out.tolist() == [*singles, -1, -1, *quotients, *rests]
