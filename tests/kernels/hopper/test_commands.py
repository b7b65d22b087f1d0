"""The commands of our kernels' roles are those of our protocols, and right in orders that did not occur, too."""

import functools

import pytest

from flashlib import pipeline as p
from flashlib.kernels.hopper import launch_backward
from flashlib.pipeline import backward_protocol, commands, protocol
from tests.kernels.hopper import on_a_cpu
from tests.kernels.hopper.on_a_cpu import BACKWARD_RUNGS, FORWARD_RUNGS, ORDERS, Sizes, Tiles, spoken
from tests.kernels.hopper.test_numbers import BACKWARD, BACKWARD_256, EIGHT_BITS, RAGGED, THREE, WIDE
from tests.pipeline.test_backward_protocol import goes_wrong, without

# For each rung: rows of a consumer, consumers, and the program of the protocol.
ALONE = functools.partial(protocol.program, consumers=1, turns=False, overlap=False)
RUNGS = {
    "r1_alike": (128, 1, protocol.program_alike),
    "r2_producer": (128, 1, ALONE),
    "r3_consumers": (64, 2, functools.partial(protocol.program, turns=False, overlap=False)),
    "r3_turns": (64, 2, functools.partial(protocol.program, overlap=False)),
    "r4_overlap": (64, 2, protocol.program),
    "r5_registers": (64, 2, protocol.program),
    "r6_persistent": (64, 2, protocol.program),
}
BACKWARD_KEYS = {"r1_alike": 128, "r2_producer": 128}  # of a consumer; the other rungs have 64


def in_the_model(name):
    """Return the protocols' name of a slot or a barrier of a kernel."""
    base, _, index = name.partition("[")
    base = base.replace("_ring", "").removeprefix("memory_")
    if base == "barriers":
        return backward_protocol.BARRIERS[int(index[:-1])]
    return base.removesuffix("_slots").removesuffix("_found") + name[len(name.partition("[")[0]) :]


@functools.cache
def forward(name, sizes, tiles):
    Q, K, V, *_ = on_a_cpu.inputs(sizes)
    return on_a_cpu.attended(name, Q, K, V, tiles, ORDERS[2], causal=sizes.causal)[1]


def flops(said):
    return [command.flops for command in said if isinstance(command, commands.Product)]


def same(said, model):
    """Compare the commands of roles with those of a Program."""
    wanted = commands.expanded(model)
    said = {"consumer 0" if role == "consumer" else role: mine for role, mine in said.items() if mine}
    assert said.keys() == wanted.keys()
    for role, mine in said.items():
        assert spoken(mine, in_the_model) == spoken(wanted[role]), role
        assert flops(mine) == flops(wanted[role]), role


def tiles_seen(first, rows, sizes, B_c):
    """Return how many tiles of keys the rows from `first` on see together, at least 1."""
    end = min(max(first + rows + sizes.N_k - sizes.N_q, 0), sizes.N_k) if sizes.causal else sizes.N_k
    return max(1, -(-end // B_c))


def order(heads, T_r, section, programs, causal):
    """Return the row blocks in the order in which programs take them, in waves of one each, as `block_of`."""
    if not causal:
        return [*range(T_r)] * heads
    blocks = [T_r - 1 - place // section for place in range(section * T_r)]
    waves = [blocks[at : at + programs] for at in range(0, len(blocks), programs)]
    whole = len(blocks) // programs
    waves = [wave[::-1] if (whole - w) % 2 == 1 else wave for w, wave in enumerate(waves)]
    return sum(waves, []) * (heads // section)


@pytest.mark.parametrize("sizes, tiles", [*RAGGED, *THREE, WIDE], ids=str)
def test_each_role_of_the_forward_does_what_the_protocol_says(sizes, tiles):
    (B, H, _), rows, d = sizes.heads, 64 * tiles.consumers, sizes.d
    T_r, ran = -(-sizes.N_q // rows), forward("forward", sizes, tiles)
    for at, one in enumerate(ran):
        taken = order(B * H, T_r, tiles.section, len(ran), sizes.causal)[at :: len(ran)]
        blocks = [
            tiles_seen(max(sizes.N_q - (T_r - i) * rows, 0), rows, sizes, tiles.B_c) for i in taken
        ]  # the last block ends with the last row
        model = protocol.program(
            blocks, protocol.Sizes(d=d, B_c=tiles.B_c), consumers=tiles.consumers, stages=tiles.stages,
            turns=not (d == 256 and sizes.causal), in_place=d == 256, K_first=True,
        )  # fmt: skip
        same(one.said, model)


@pytest.mark.parametrize("sizes, tiles", RAGGED, ids=str)
@pytest.mark.parametrize("name", FORWARD_RUNGS)
def test_each_role_of_a_rung_does_what_the_protocol_says(name, sizes, tiles):
    (B, H, _), (rows, consumers, of) = sizes.heads, RUNGS[name]
    B_r, ran = rows * consumers, forward(name, sizes, tiles)
    T_r = -(-sizes.N_q // B_r)
    for at, one in enumerate(ran):
        blocks = []
        for place in range(at, B * H * T_r, len(ran)):
            i = place % T_r
            if name == "r6_persistent" and sizes.causal:
                i = T_r - 1 - place % (tiles.section * T_r) // tiles.section
            blocks.append(tiles_seen(i * B_r, B_r, sizes, tiles.B_c))
        model = of(blocks, protocol.Sizes(rows=rows, d=sizes.d, B_c=tiles.B_c), stages=tiles.stages)
        wanted = commands.expanded(model)
        said = {"consumer 0" if role == "consumer" else role: mine for role, mine in one.said.items()}
        assert wanted.keys() == said.keys() or name == "r1_alike"
        for mine, model_of_it in zip(said.values(), _in_order(wanted, said), strict=True):
            told = spoken(model_of_it)
            if name != "r6_persistent":  # with one row block Q comes once: nobody needs to know that it was read
                told = [command for command in told if not command[1].startswith("q_empty")]
            assert spoken(mine, in_the_model) == told


def _in_order(wanted, said):
    """Return the commands of the protocol in the order of the kernel's roles; a single role needs no name."""
    return wanted.values() if len(said) == 1 else [wanted[role] for role in said]


@functools.cache
def gradients(name, sizes):
    *tensors, dlse = on_a_cpu.inputs(sizes)
    options = {"dlse": dlse, "causal": sizes.causal}
    return on_a_cpu.differentiated(name, *tensors, tiles=Tiles(), order=ORDERS[2], **options)[1]


def once(said):
    """Return commands with successive loads merged into one: a tile is loaded in parts."""
    before = [None, *said]
    return [one for one, last in zip(said, before, strict=False) if one != last or one[0] != "Read"]


def rows_seen(number, sizes):
    """Return how many tiles of rows a program of the backward walks, over all heads that read its keys."""
    (_, H, H_k), rows = sizes.heads, launch_backward.ROWS[sizes.d]
    first_key = number % -(-sizes.N_k // 128) * 128
    unseen = max(first_key - (sizes.N_k - sizes.N_q), 0) // rows if sizes.causal else 0
    return H // H_k * (-(-sizes.N_q // rows) - unseen)


@pytest.mark.parametrize(
    "amount, sizes", [("all" if s in BACKWARD[1::2] else "few", s) for s in BACKWARD], ids=str
)
def test_each_role_of_the_backward_does_what_the_protocol_says(amount, sizes):
    (_, H, H_k), rows = sizes.heads, launch_backward.ROWS[sizes.d]
    for at, one in enumerate(ran for ran in gradients("backward", sizes) if ran.kernel == "_backward"):
        halves, T_c = 2 * H // H_k * -(-sizes.N_q // rows), -(-sizes.N_k // 128)
        share, j = -(-halves // T_c), at % T_c
        finished = max(min((j + 1) * share, halves) - j * share, 0) if at >= T_c else 0  # of the unit before
        model = backward_protocol.program(
            rows_seen(at, sizes), backward_protocol.BackwardSizes(d=sizes.d), finished
        )
        wanted = commands.expanded(model)
        assert wanted.keys() == {role for role, said in one.said.items() if said}
        for role, mine in wanted.items():
            assert once(spoken(one.said[role], in_the_model)) == once(spoken(mine)), role


def by_threads(role, said):
    """Return the protocol's commands for a kernel whose own warps add dQ instead of the copy unit."""
    if role == "reducer":
        return [("Read", *one[1:]) if one[0] == "Store" else one for one in said if one[0] != "FinishStores"]
    pairs = zip(said, [*said[1:], ("",)], strict=True)
    return [one for one, after in pairs if one[0] != "Fence" or not any("dq_full" in part for part in after)]


@pytest.mark.parametrize("sizes", [sizes for sizes in BACKWARD if sizes.d == 128], ids=str)
@pytest.mark.parametrize("name", ["r4_half_columns", "r5_in_order", "r6_reducer"])
def test_each_role_of_a_backward_rung_does_what_the_protocol_says(name, sizes):
    """Rung 6 does, except that its reducer adds by itself; rungs 4 and 5 have none, and no commands for dQ."""
    for at, one in enumerate(gradients(f"backward_{name}", sizes)):
        wanted = commands.expanded(backward_protocol.program(rows_seen(at, sizes)))
        if name != "r6_reducer":
            del wanted["reducer"]
        assert wanted.keys() == one.said.keys()
        for role, mine in one.said.items():
            model = once(by_threads(role, spoken(wanted[role])))
            if name != "r6_reducer":
                model = [command for command in model if not any(part.startswith("dq") for part in command)]
            assert once(spoken(mine, in_the_model)) == model, role


# A kernel, what it computes, and its tiles: long enough that each slot is used again.
LONG = Sizes((1, 1, 1), 192, 320, 64, False)
PROGRAMS = {
    **{name: ("forward", name, LONG, Tiles(multiprocessors=1)) for name in ("forward", *FORWARD_RUNGS)},
    "forward, three consumers": ("forward", "forward", LONG, Tiles(3, multiprocessors=1)),
    "forward, d = 256": ("forward", "forward", LONG._replace(d=256), Tiles(multiprocessors=1)),
    "fp8": ("forward", "fp8", LONG, Tiles(multiprocessors=1)),
    "fp8, three consumers, no turns": ("forward", "fp8", LONG, Tiles(3, multiprocessors=1, turns=False)),
    "backward": ("backward", "backward", Sizes((1, 1, 1), 320, 128, 128, False), None),
    "backward, d = 64": ("backward", "backward", Sizes((1, 1, 1), 640, 128, 64, False), None),
    "backward, d = 256": ("backward", "backward", Sizes((1, 1, 1), 256, 256, 256, False), None),
    **{
        f"backward {name}": ("backward", f"backward_{name}", Sizes((1, 1, 1), 320, 128, 128, False), None)
        for name in BACKWARD_RUNGS
    },
}


def longest(of):
    """Return, for each kernel of a call, the program with the most commands."""
    pass_of, name, sizes, tiles = PROGRAMS[of]
    ran = forward(name, sizes, tiles) if pass_of == "forward" else gradients(name, sizes)
    by_kernel = {}
    for one in sorted(ran, key=lambda one: sum(map(len, one.said.values()))):
        by_kernel[one.kernel] = one.program()
    return by_kernel.values()


# A program with the commands of a protocol is right because the protocol is.
OF_NO_PROTOCOL = ["fp8", "backward, d = 256", *(f"backward {name}" for name in BACKWARD_RUNGS if name < "r4")]
FEW = ["forward", "backward", *OF_NO_PROTOCOL]


@pytest.mark.parametrize("amount, of", [*(("few", of) for of in FEW), *(("all", of) for of in PROGRAMS)])
def test_commands_of_a_kernel_are_right_under_random_schedules(amount, of):
    for at, program in enumerate(longest(of)):
        report = p.check(program, states=0, schedules={"few": 15, "all": 1000}[amount], seed=at)
        assert report.fault is None, report


# Waits of the pass for dK and dV that another wait implies; they are there for readers. Q(g + 1) comes when dP(g)
# has begun, from dO(g); P(g) when S(g) is done, from Q(g).
OF_DKV = 12  # barriers
IMPLIED = {("consumer 0", f"Wait(barrier=barriers[{4 + s}], phase={1 - s})") for s in (0, 1)}
IMPLIED |= {("consumer 1", f"Wait(barrier=barriers[{2 + s}], phase={phase})") for s in (0, 1) for phase in (0, 1)}


def parts(program):
    """Return (role, command) of each wait, arrival and fence, once, except waits that pass at a fresh barrier."""
    kinds, found = (p.Wait, p.Arrive, p.Expect, p.Fence, p.FinishStores), {}
    for role, make in program.roles.items():
        waited = set()
        for one in make():
            passes = isinstance(one, p.Wait) and one.barrier not in waited and one.phase == 1
            waited |= {one.barrier} if isinstance(one, p.Wait) else set()
            if isinstance(one, kinds) and not passes:
                found[role, str(one)] = None
    return list(found)


def test_both_passes_at_d_256_are_wrong_without_any_of_their_waits_and_arrivals():
    """They have no protocol; for the other kernels tests/pipeline leaves out each in turn."""
    for program in longest("backward, d = 256"):
        for role, command in parts(program):
            wrong = goes_wrong(without(program, role, command))
            implied = len(program.barriers) == OF_DKV and (role, command) in IMPLIED
            assert wrong != implied, f"{role} without {command}: wrong is {wrong}"


@pytest.mark.parametrize("amount, sizes", [("all", BACKWARD_256[0]), ("few", BACKWARD_256[1])], ids=str)
def test_both_passes_at_d_256_ran(amount, sizes):
    (B, H, H_k), kernels = sizes.heads, [one.kernel for one in gradients("backward", sizes)]
    assert kernels.count("_dkv") == B * H_k * -(-sizes.N_k // 64)
    assert kernels.count("_dq") == B * H * -(-sizes.N_q // 128)


@pytest.mark.parametrize("amount, case", [("all", EIGHT_BITS[1]), *(("few", case) for case in EIGHT_BITS[2:4])])
def test_programs_of_the_kernel_in_eight_bits_share_its_row_blocks(amount, case):
    sizes, tiles = case
    ran, blocks = forward("fp8", sizes, tiles), -(-sizes.N_q // (64 * tiles.consumers))
    stores = [sum(isinstance(one, p.Store) for one in said) for one in ran for said in one.said.values()]
    assert sum(stores) == sizes.heads[0] * sizes.heads[1] * blocks * tiles.consumers
    assert len(ran) == min(tiles.multiprocessors, sizes.heads[0] * sizes.heads[1] * blocks)
