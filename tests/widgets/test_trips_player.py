"""TripsPlayer moves what the meter counted, which is what `cost` says, and both of its sides compute attention."""

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib import cost, naive
from flashlib.types import Step
from flashlib.widgets import TripsPlayer
from flashlib.widgets.trips_player import trips
from flashlib.widgets.trips_player.trips_player import CAPACITY, RANGES, B

SIZES = [(24, 4), (1, 1), (13, 5), (48, 8)]
SIX = [(True, "QK"), (False, "S"), (True, "S"), (False, ["P", "lse"]), (True, "PV"), (False, "O")]


@pytest.fixture(params=SIZES, ids=str)
def player(request):
    return TripsPlayer(*request.param)


def inputs(N, d):
    rng = np.random.default_rng(2)
    return [rng.normal(size=(N, d)).astype(np.float32) for _ in range(3)]


def moved(run, *, loads):
    """The bytes of all trips of a side in one direction, as the page gets them."""
    return sum(move[3] for trip in run["trips"] if trip["loads"] is loads for move in trip["moves"])


def test_the_bytes_of_all_trips_are_those_of_the_closed_forms(player):
    sizes = (player.N, player.N, player.d)
    forms = {
        "standard": cost.standard_traffic(*sizes, dtype="float32"),
        "flash": cost.fa2_traffic(*sizes, B_r=B, B_c=B, dtype="float32"),
    }
    for side, form in forms.items():
        run = player.frames[side]
        assert (moved(run, loads=True), moved(run, loads=False)) == (form.read, form.written)
    assert repr(player) == (
        f"TripsPlayer(N={player.N}, d={player.d}: standard attention moves {forms['standard'].total} bytes in 6 "
        f"trips, FlashAttention {forms['flash'].total} bytes in {len(player.frames['flash']['trips'])})"
    )


def test_a_move_has_the_bytes_of_its_rows(player):
    columns = {"S": player.N, "P": player.N, "lse": 1}
    for side in ("standard", "flash"):
        for trip in player.frames[side]["trips"]:
            for name, first, stop, nbytes in trip["moves"]:
                assert nbytes == 4 * (stop - first) * columns.get(name, player.d) and 0 <= first < stop <= player.N


def test_standard_attention_makes_six_trips(player):
    found = [(trip["loads"], [move[0] for move in trip["moves"]]) for trip in player.frames["standard"]["trips"]]
    assert found == [(loads, list(names)) for loads, names in SIX]


def test_flash_attention_never_moves_s_or_p_and_computes_a_tile_of_each_load(player):
    run = player.frames["flash"]
    assert {move[0] for trip in run["trips"] for move in trip["moves"]} == {"Q", "K", "V", "O", "lse"}
    blocks = -(-player.N // B)
    assert [trip["computed"] is not None for trip in run["trips"]] == ([True] * blocks + [False]) * blocks
    assert all(trip["loads"] == (trip["computed"] is not None) for trip in run["trips"])


def test_the_buffer_has_attention_of_both_sides_and_the_tiles(player):
    numbers = np.frombuffer(player.frames["buffer"], "<f8")
    N, d = player.N, player.d

    def array(side, name, cols):
        return numbers[player.frames[side]["arrays"][name] :][: N * cols].reshape(N, cols)

    Q, K, V = (array("flash", name, d) for name in "QKV")
    exact = naive.attention(Q, K, V)
    for side in ("standard", "flash"):
        assert array(side, "O", d) == pytest.approx(exact.O, abs=1e-5)
        assert array(side, "lse", 1)[:, 0] == pytest.approx(exact.lse, abs=1e-5)
        assert player.frames[side]["arrays"]["Q"] == player.frames["standard"]["arrays"]["Q"]
    S, P = (array("standard", name, N) for name in "SP")
    assert pytest.approx(Q @ K.T / np.sqrt(d), abs=1e-5) == S
    assert pytest.approx(np.exp(S - exact.lse[:, None]), abs=1e-5) == P
    i = 0
    for trip in player.frames["flash"]["trips"]:
        rows = {name: slice(first, stop) for name, first, stop, _ in trip["moves"]}
        if not trip["loads"]:
            i = rows["O"].stop
            continue
        tile = S[i : i + B, rows["K"]]
        assert numbers[trip["computed"][0] :][: tile.size].reshape(tile.shape) == pytest.approx(tile, abs=1e-5)


def test_a_tile_fits_on_the_chip_in_every_setting():
    most = max(TripsPlayer(N, d).frames["tile"][1] for N in RANGES["N"] for d in RANGES["d"])
    assert most == cost.sram_bytes(B, B, RANGES["d"][1], "float32") <= CAPACITY
    assert TripsPlayer().frames["tile"][1] == cost.sram_bytes(B, B, 4, "float32")


def test_a_trip_ends_where_the_direction_changes_and_at_a_step():
    a, b, c = (trips.Move(name, True, range(2), 8) for name in "abc")
    out = trips.Move("d", False, range(2), 8)
    step = Step(0, 0, None, None, None)
    found = trips.trips_of([a, b, step, c, out, out, a])
    assert found == [trips.Trip([a, b], step), trips.Trip([c]), trips.Trip([out, out]), trips.Trip([a])]
    assert [(trip.loads, trip.nbytes) for trip in found] == [(True, 16), (True, 8), (False, 16), (True, 8)]


@pytest.mark.parametrize("argument", [{"N": 0}, {"N": 49}, {"d": 9}, {"d": 1.5}, {"N": True}])
def test_what_is_wrong_is_said_in_its_place(argument):
    ((name, value),) = argument.items()
    low, high = RANGES[name]
    player = TripsPlayer(**argument)
    assert player.problem == f"{name} is {value!r}; pass a whole number from {low} to {high}."
    assert repr(player) == f"TripsPlayer({player.problem})"
    with pytest.raises(ValueError, match="pass a whole number"):
        player.figure()


def test_the_picture_names_the_trips_and_the_bytes():
    texts = TripsPlayer().figure().texts
    assert "Standard attention: 10,848 B in 6 trips" in texts and "FlashAttention: 3,168 B in 12 trips" in texts
    assert {"S out", "S in", "P and lse out", "P and V in"} <= set(texts)
