"""How a call is launched: the work of each program, and the copy unit's descriptors; on any computer."""

import importlib
import itertools
import math

import pytest
import torch

from flashlib.gluon.language import Language
from flashlib.gluon.world import World
from flashlib.kernels.hopper import backward, forward, instrumented, ladder, launch, launch_backward
from flashlib.kernels.launch import tile_sizes
from flashlib.private_apis import gpu_stand_in, of_driver

SMS = 132


@pytest.fixture
def plan(monkeypatch):
    """Return a function that plans a call on a Hopper GPU."""
    monkeypatch.setattr(tile_sizes, "room", lambda device: tile_sizes.Room(227 * 1024, SMS, tma=True))

    def plan(B, H, H_k, N_q, N_k, d, causal):
        Q, K = (torch.empty(B, h, n, d, dtype=torch.float16, device="meta") for h, n in ((H, N_q), (H_k, N_k)))
        return launch._launch(forward._forward, Q, K, K, causal, None)

    return plan


def plain(*names):
    """Return functions of the forward as plain Python, by name, for one of SMS programs."""
    world = World(Language((0, 0, 0), (SMS, 1, 1), forward._forward.fn.__code__, 4))
    return {name: world.plain(vars(forward)[name].fn) for name in names}


@pytest.mark.parametrize("B, H, H_k, N_q, N_k", [(1, 2, 1, 70, 53), (3, 7, 7, 1021, 4099), (2, 6, 3, 4096, 20011)])
def test_a_launch_covers_every_row_block(B, H, H_k, N_q, N_k, plan):
    for d, causal in itertools.product((64, 128, 256), (False, True)):
        found = plan(B, H, H_k, N_q, N_k, d, causal)
        B_R = found.constants["B_R"]
        assert B_R == 64 * found.constants["CONSUMERS"] and found.constants["CAUSAL"] == causal
        blocks = B * H * -(-N_q // B_R)
        heads, group, *lengths, T_r, section, n_tiles = found.sizes
        assert (heads, group, lengths, T_r * B * H, n_tiles) == (H, H // H_k, [N_q, N_k], blocks, blocks)
        together = section * N_k * d * 2 * 2 // group  # bytes of K and V
        assert B * H % section == 0 and (section == 1 or together <= launch.TOGETHER)
        assert found.grid[0] == min(blocks, SMS)
        expected = 3 if d == 64 and N_q > launch.SHORT else 2
        assert found.constants["CONSUMERS"] == expected == launch.tiles_of(d, N_q).CONSUMERS


@pytest.mark.parametrize("N, d", [(1000, 128), (1024, 64), (2048, 64), (4096, 64), (4096, 128), (16384, 64)])
def test_causal_programs_have_nearly_the_same_work(N, d, plan):
    """In tiles of keys, plus one for the rest of a block's work; all blocks are computed."""
    B, H = 16384 // N, 2048 // d
    found = plan(B, H, H, N, N, d, True)
    B_R, B_C, T_r, section = found.constants["B_R"], launch.TILES[d].B_C, *found.sizes[4:6]
    functions = plain("block_of", "first_row", "tiles_of")
    tiles = [functions["block_of"](tile, T_r, section, True) for tile in range(found.sizes[6])]
    assert sorted(tiles) == [(head, i) for head in range(B * H) for i in range(T_r)]
    firsts = [functions["first_row"](i, T_r, N, B_R) for i in range(T_r)]
    work = [1 + functions["tiles_of"](first, N, N, B_R, B_C, True) for first in firsts]
    loads = [sum(work[i] for _, i in tiles[program::SMS]) for program in range(SMS)]
    assert max(loads) <= 1.03 * sum(loads) / SMS
    longest_first = [tile % (section * T_r) // section for tile in range(len(tiles))]
    in_order = [sum(work[T_r - 1 - at] for at in longest_first[program::SMS]) for program in range(SMS)]
    assert max(loads) <= max(in_order)


@pytest.mark.parametrize("N, B_R", [(1, 128), (128, 128), (129, 128), (191, 192), (1000, 192), (1021, 128)])
def test_row_blocks_cover_all_rows_and_the_last_ends_with_the_last(N, B_R):
    functions = plain("first_row")
    T_r = -(-N // B_R)
    firsts = [functions["first_row"](i, T_r, N, B_R) for i in range(T_r)]
    assert firsts[0] == 0 and firsts[-1] == max(N - B_R, 0)
    assert all(0 < other - first <= B_R for first, other in itertools.pairwise(firsts))


def test_an_axis_of_size_1_may_have_any_stride_and_the_copy_unit_gets_a_multiple_of_16_bytes():
    for shape, strides in (((1, 2, 32, 64), (3, 2048, 64, 1)), ((2, 1, 32, 64), (2048, 5, 64, 1))):
        X = torch.empty_strided(shape, strides, dtype=torch.float16)
        assert launch.describable(X)
        told = launch.describe(X, 64).strides
        assert all(stride * 2 % 16 == 0 for stride in told[:3]) and told[3] == 1
        assert all(t == s for t, s, n in zip(told, strides, shape, strict=True) if n > 1)
    for strides in ((4096, 2044, 64, 1), (4096, 0, 64, 1), (4096, 2048, 64, 2)):
        assert not launch.describable(torch.empty_strided((2, 2, 32, 64), strides, dtype=torch.float16))


@pytest.fixture
def on_a_cpu(monkeypatch):
    """A Hopper GPU as far as launchers can tell, with tensors on the CPU."""
    monkeypatch.setattr(launch, "PLANS", launch.planning.Plans())
    with gpu_stand_in.standing_in(gpu_stand_in.StandIn(SMS)):
        yield


def inputs(B, H, H_k, N_q, N_k, d):
    torch.manual_seed(0)
    return [torch.randn(B, h, n, d).half() for h, n in ((H, N_q), (H_k, N_k), (H_k, N_k))]


class Kernel:
    """A kernel that only records the arguments of its launch."""

    def __init__(self, kernel):
        self.arg_names, self.noted = kernel.arg_names, {}

    def __getitem__(self, grid):
        return lambda **given: self.noted.update(given, grid=grid)


@pytest.mark.parametrize("causal, scale", [(False, 0.3), (True, None)])
@pytest.mark.parametrize(
    "name",
    ["r1_alike", "r2_producer", "r3_consumers", "r3_turns", "r4_overlap", "r5_registers", "r6_persistent"],
)
def test_a_rung_gets_its_tensors_and_its_tiles(name, causal, scale, on_a_cpu, monkeypatch):
    """r5 and r6 have the producer's registers, so a tile has 128 keys; r3 to r6 have two consumers of 64 rows."""
    module, kernels = importlib.import_module(f"flashlib.kernels.hopper.ladder.{name}"), []

    def noted(kernel, *given, **options):
        kernels.append(Kernel(kernel))
        return ladder.launch(kernels[0], *given, **options)

    monkeypatch.setattr(module, "launch", noted)
    for d in (64, 128):
        Q, K, V = inputs(9, 4, 2, 517, 300, d)
        kernels.clear()
        O, lse = module.attention(Q, K, V, causal=causal, **{} if scale is None else {"scale": scale})
        found = kernels[0].noted
        of = [found[f"{name}_desc"] for name in "qkvo"] + [found["lse_ptr"]]
        assert [getattr(desc, "base", desc) is X for desc, X in zip(of, (Q, K, V, O, lse), strict=True)] == [
            True
        ] * 5
        rows, moved = (128 if name < "r3" else 64), name >= "r5"
        assert [desc.block_shape[2] for desc in of[:4]] == [rows, *2 * [128 if moved else 64], rows]
        assert found["num_warps"] == rows // 16
        log2e = (d**-0.5 if scale is None else scale) * math.log2(math.e)
        assert found["scale_log2e"] == pytest.approx(log2e)
        if "scale_above" in found:
            assert log2e <= found["scale_above"] < 2 * log2e and math.log2(found["scale_above"]) % 1 == 0
        expected = {"H": 4, "group": 2, "N_q": 517, "N_k": 300, "T_r": 5, "n_tiles": 5 * 9 * 4, "B_R": 128}
        expected |= {"CAUSAL": causal, "CONSUMERS": 1 if name < "r3" else 2, "TURNS": True}
        assert {key: found[key] for key in expected if key in found} == {
            key: value for key, value in expected.items() if key in found
        }
        assert found["grid"] == (SMS if name == "r6_persistent" and not causal else 5 * 9 * 4,)
        slots = found["STAGES"] * 2 * of[1].block_shape[2] * d * 2 + (128 * d) * 2
        assert slots <= 227 * 1024 < slots + 2 * found["STAGES"] * 2 * of[1].block_shape[2] * d * 2


@pytest.mark.parametrize("causal, scale", [(False, 0.3), (True, None)])
def test_the_kernel_gets_its_tensors_in_their_order(causal, scale, on_a_cpu, monkeypatch):
    noted = noted_launches(monkeypatch)
    for d in (64, 128, 256):
        Q, K, V = inputs(1, 4, 2, 70, 53, d)
        O, lse = forward.attention(Q, K, V, causal=causal, scale=scale)
        *described, to, scale_log2e, above = noted.pop()
        tensors = [getattr(desc, "base", desc) for desc in (*described, to)]
        assert [one is other for one, other in zip(tensors, (Q, K, V, O, lse), strict=True)] == [True] * 5
        B_C = launch.TILES[d].B_C
        assert [desc.block_shape for desc in described] == [[1, 1, n, d] for n in (64, B_C, B_C, 64)]
        log2e = (d**-0.5 if scale is None else scale) * math.log2(math.e)
        assert scale_log2e == pytest.approx(log2e)
        assert log2e <= above < 2 * log2e and math.log2(above) % 1 == 0
        assert (O.shape, O.dtype, lse.shape, lse.dtype) == (Q.shape, Q.dtype, Q.shape[:3], torch.float32)


def noted_launches(monkeypatch):
    """Return a list to which each launch adds its arguments, with descriptors, instead of running."""
    noted = []

    def call(own, *given, **_):
        noted.append(of_driver.described(given, own.describe))

    monkeypatch.setattr(launch.planning.Launch, "__call__", call)
    return noted


def lie_alike(desc, X):
    """Return whether a descriptor is of X and has its strides; an axis of size 1 may have any stride."""
    sides = zip(X.shape, desc.strides, X.stride(), strict=True)
    known = desc.base.data_ptr() == X.data_ptr() and tuple(desc.shape) == tuple(X.shape)
    return known and all(stride == own for n, stride, own in sides if n > 1) and desc.layout is not None


def spread(B, H, N, d, between):
    """Return a tensor (B, H, N, d) stored as (B, N, H, d), with `between` other numbers after each token."""
    wide = torch.full((B, N, H * d + between), torch.nan, dtype=torch.float16)
    X = wide[:, :, : H * d].view(B, N, H, d).transpose(1, 2)
    return X.copy_(torch.randn(X.shape))


@pytest.mark.parametrize("wide", [False, True])
def test_descriptors_have_the_strides_of_the_tensors_of_their_call(wide, on_a_cpu, monkeypatch):
    """In the first call and in later ones with its plan; a dO that cannot be described is copied in each."""
    noted, dtype = noted_launches(monkeypatch), torch.float32 if wide else None
    monkeypatch.setattr(launch_backward, "PLANS", launch.planning.Plans())
    for between, again in itertools.product((0, 64), range(2)):
        Q, K, V, dO = (spread(2, h, n, 64, between) for h, n in ((4, 70), (2, 53), (2, 53), (4, 70)))
        O, lse = forward.attention(Q, K, V, out_dtype=dtype)
        (of_forward,) = noted
        assert all(map(lie_alike, of_forward, (Q, K, V, O)))
        noted.clear()
        given = dO if again else dO[:1, :1, :1].expand(Q.shape)
        for part in ({"delta": torch.zeros_like(lse)}, {}):
            grads = backward.backward(Q, K, V, None if part else O.half(), lse, given, out_dtype=dtype, **part)
            _, (q, k, v, do, lse2, delta, dk, dv, sums, pointer, dq, counts, *_), finish = noted
            assert all(map(lie_alike, (q, k, v), (Q, K, V))) and torch.equal(do.base, given)
            assert lie_alike(do, do.base) and (do.base is given) == launch.describable(given)
            assert [dk, dv] == [*grads[1:]] if wide else all(map(lie_alike, (dk, dv), grads[1:]))
            rows = (lse2, delta)
            assert all(tuple(X.shape) == (8, X.base.shape[2]) and X.base.is_contiguous() for X in rows)
            assert sums.base is pointer is finish[0].base and dq is finish[1] is grads.dQ
            first, many = counts.data_ptr() - pointer.data_ptr(), sums.shape[0] * sums.shape[1]
            assert first == 4 * many and counts.numel() == pointer.numel() - many
            noted.clear()


@pytest.mark.parametrize("name", ["r1_alike", "r2_producer", "r4_overlap", "forward"])
def test_a_recording_names_the_tiles_of_its_launch(name, on_a_cpu, monkeypatch):
    recording, launches = instrumented.instrument(name).recording, []

    class Kernel:
        def __getitem__(self, grid):
            return lambda *given, events, **named: launches.append((grid, events))

    monkeypatch.setattr(recording, "kernel", Kernel())
    found = instrumented.attention(*inputs(9, 4, 2, 517, 300, 64), rung=name)
    B_c, stages, consumers = launch.tiles_of(64, 517)
    expected = {"B_r": 64 * consumers, "B_c": B_c, "stages": stages, "consumers": consumers}
    if name != "forward":
        B_c, stages = ladder.EQUAL[64]
        expected = {"B_r": 128, "B_c": B_c, "stages": stages, "consumers": 1 if name < "r3" else 2}
    programs = SMS if name == "forward" else -(-517 // 128) * 9 * 4
    assert found.launched == expected
    (((n, *_), events),) = launches
    assert n == programs == len(events) and events is found.events
    assert events.shape[2] == len(found.points) and not events.any()
    found.again()
    assert [grid for grid, _ in launches] == [launches[0][0]] * 2


def test_lag_and_ring_leave_time():
    """Programs that write dQ begin two or more waves after those that added to it, and so do the next that add."""
    for T_c, multiprocessors in itertools.product((1, 2, 7, 8, 131, 264, 1024), (114, 132)):
        lag, ring = launch_backward.turns(T_c, multiprocessors)
        assert lag >= 1 and lag * T_c >= launch_backward.LAG * multiprocessors <= (ring - lag) * T_c
        assert (lag - 1) * T_c < launch_backward.LAG * multiprocessors or lag == 1
