"""The runs of RingPlayer: with ranks that compute, and with ranks that only count their tiles."""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

from flashlib import cost, masks, naive, ring
from flashlib.ring import programs
from flashlib.ring.play import timed
from flashlib.types import Attention
from flashlib.widgets.ring_player import choices

D, B = 4, 4  # head dimension; rows and keys of a tile
BYTES = 2 * D * 8  # of a token's K and V, in fp64
PROGRAMS = {"ring": programs.ring, "all-gather": programs.all_gather}


@cache
def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Q, K and V, (N, D), in fp64; the first tokens are the same for every N."""
    rng, most = np.random.default_rng(16), choices.COUNTS["N"][1]
    Q, K, V = (rng.normal(size=(most, D)) for _ in range(3))
    return 2 * Q, K, V  # so that a row's maxima differ from hop to hop


def tokens(N: int) -> tuple[np.ndarray, ...]:
    """Return Q, K and V of N tokens."""
    return tuple(X[:N] for X in problem())


def run(setting: dict, program: Callable | None = None) -> ring.RingRun:
    """Return the RingRun of a setting, with real numbers. program: the program of the way "own".

    Raises ValueError if a learner's own rank raises an exception.
    """
    if setting["way"] != choices.OWN:
        return _known(setting)
    try:
        found = _events(setting, program)
    except Exception as error:
        raise ValueError(f"A rank raised {type(error).__name__}: {error}") from error
    if found.result is not None:
        _check(found.result, setting["N"])
    return found


def _check(result, N):
    """Raise ValueError unless ranks returned O and lse of their rows."""
    if not isinstance(result, Attention) or result.O.shape != (N, D) or result.lse.shape != (N,):
        given = ", ".join(f"{name} {X.shape}" for name, X in result._asdict().items())
        raise ValueError(
            f"The ranks returned {given} of all rows; return me.finish(state): O {(N, D)}, lse {(N,)}"
        )


def _known(setting):
    """Return the RingRun of a correct way; the result of a hop is computed once, whatever the times."""
    of = setting["mask"], setting["N"], setting["ranks"], setting["cut"]
    hops = _hops(*of)
    play, made = _play(setting, lambda me: _remembering(me, hops[me.r]))
    O, lse = np.empty((setting["N"], D)), np.empty(setting["N"])
    for r, part in enumerate(play.results):
        own = ring.positions(setting["N"], len(made), r, setting["cut"])
        O[own], lse[own] = part.O[0], part.lse[0]
    return ring.RingRun(_in_order(play), Attention(O, lse), None, made, made[0].plan)


def counted(setting: dict) -> ring.RingRun:
    """Return the RingRun of a setting without numbers: a rank counts the tiles of a hop and takes their time."""
    return _counted(tuple(setting.items()))


@lru_cache(64)
def _counted(items):
    setting = dict(items)
    tiles = _planned(setting["mask"], setting["N"], setting["ranks"], setting["cut"])[1]
    play, made = _play(setting, lambda me: _counting(me, tiles[me.r]))
    return ring.RingRun(_in_order(play), None, None, made, made[0].plan)


def _play(setting, prepared):
    """Return the Play of a way, run to its end, and its Ranks. prepared: modifies each Rank in place."""
    made = _ranks(_planned(setting["mask"], setting["N"], setting["ranks"], setting["cut"])[0])
    for me in made:
        prepared(me)
    program = PROGRAMS[setting["way"]]
    return timed(ring.RingPlay([program(me) for me in made], _times(setting))), made


def _in_order(play):
    return sorted(play.events, key=lambda event: event.stop)


def _ranks(found):
    """Return the Ranks of a RingPlan."""
    Q, K, V = (X[None] for X in tokens(found.N_q))
    own = [ring.positions(found.N_q, found.P, r, found.layout) for r in range(found.P)]
    how = {"scale": 1 / np.sqrt(D), "B_r": B, "B_c": B}
    return [ring.Rank(r, found, Q[:, at], K[:, at], V[:, at], **how) for r, at in enumerate(own)]


@lru_cache(64)
def _hops(mask, N, P, layout):
    """Return the States of each rank's rows for the keys of each rank, with their numbers of tiles; cached."""
    made = _ranks(_planned(mask, N, P, layout)[0])
    return [[me.partial(other.r, other.K, other.V) for other in made] for me in made]


@lru_cache(64)
def _planned(mask, N, P, layout):
    """Return the RingPlan of a setting, and how many tiles each rank has with the keys of each rank; cached."""
    found = ring.plan(masks.combined(choices.mask_of(mask, N), False), N, N, P, layout)
    return found, [[tiles_of(hop) for hop in own] for own in found.hops]


@lru_cache(64)
def exact(N: int, mask: str) -> Attention:
    """Return O and lse of one process."""
    return naive.attention(*tokens(N), mask=choices.mask_of(mask, N))


def _events(setting, program):
    mask = choices.mask_of(setting["mask"], setting["N"])
    options: dict[str, Any] = {"ranks": setting["ranks"], "layout": setting["cut"], "times": _times(setting)}
    return ring.events(*tokens(setting["N"]), mask=mask, B_r=B, B_c=B, program=program, **options)


def _times(setting):
    return ring.Times(tile=setting["tile"], byte=setting["token"] / BYTES)


def _remembering(me, hops):
    """Make a rank return the known States of its rows for the keys of each rank."""
    me.partial = lambda source, K, V: hops[source]


def _counting(me, tiles):
    """Make a rank return only the number of tiles of a hop."""
    nothing = me.nothing()
    me.partial = lambda source, K, V: (nothing, tiles[source])
    me.merged = lambda state, other: nothing


def tiles_of(hop: ring.Hop | None) -> int:
    """Return how many tiles a hop has."""
    if hop is None:
        return 0
    rows, keys = (part.stop - part.start for part in hop[:2])
    return int(cost.tiles_per_row_block(rows, keys, B_r=B, B_c=B, mask=hop.mask).sum())
