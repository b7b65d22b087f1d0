"""The roles of both passes of our Hopper backward at d = 256, as `kernels.hopper.dkv_256` and `dq_256` have them.

Who arrives at each barrier, who waits there and for which phase stands in the tables at the top of those files. A
test runs both and compares what they say, command by command.
Source: FlashAttention-2, Algorithm 2; FlashAttention-3 (Shah and others, 2024), appendix B.1, for the roles.
"""

import functools
from collections.abc import Iterator, Sequence

from flashlib.inputs import check_counts
from flashlib.pipeline import commands as c

TILE = 64  # rows, and keys
D = 256
CONSUMERS = 2
BYTES = TILE * D * 2  # of a tile of Q, K, V or dO
NUMBERS = TILE * 4  # of its lse or delta
FLOPS = 2 * TILE * TILE * D  # of a product


def _barriers(once: Sequence[str], twice: Sequence[str], of_both: Sequence[str]) -> dict[str, c.Barrier]:
    """Return barriers by name. twice: of two slots; of_both: a phase takes an arrival of each consumer."""
    names = [*once, *(f"{name}[{s}]" for name in twice for s in range(2))]
    return {name: c.Barrier(name, CONSUMERS if name.partition("[")[0] in of_both else 1) for name in names}


def _fetch(barrier, *tiles):
    """Ask for tiles, pairs of a name and a slot, for which the same barrier is waited for."""
    yield c.Expect(barrier, sum(slot.n_bytes for _, slot in tiles))
    for name, slot in tiles:
        yield c.Copy(name, slot, barrier)


def _store(tile, slot, needs):
    yield c.Write(tile, slot, needs)
    yield c.Fence()
    yield c.Store(tile, slot)
    yield c.FinishStores()


class Keys:
    """The pass for dK and dV: 64 keys, and n tiles of rows that see them."""

    def __init__(self, n: int) -> None:
        check_counts(at_least=1, n=n)
        self.n = n
        self.kv, self.q, self.do = (c.ring(name, 2, BYTES) for name in ("kv", "q", "do"))
        self.rows, self.p = c.ring("rows", 4, NUMBERS), c.ring("p", 2, TILE * TILE * 2)
        twice = "q_full", "do_full", "p_full", "q_empty", "do_empty"
        self.barriers = _barriers(("k_full", "v_full"), twice, ("q_empty", "do_empty"))

    def at(self, name: str, g: int) -> c.Barrier:
        return self.barriers[f"{name}[{g % 2}]"]

    def there(self, name: str, g: int) -> c.Wait:
        return c.Wait(self.at(name, g), g // 2 % 2)

    def producer(self) -> Iterator[c.Command]:
        """Bring K and V once, and n tiles of rows whenever a slot is free."""
        yield from _fetch(self.barriers["k_full"], ("K", self.kv[0]))
        for g in range(self.n):
            s, free = g % 2, g // 2 % 2 ^ 1
            yield c.Wait(self.at("q_empty", g), free)
            yield from _fetch(self.at("q_full", g), (f"Q{g}", self.q[s]), (f"lse{g}", self.rows[s]))
            if not g:
                yield from _fetch(self.barriers["v_full"], ("V", self.kv[1]))
            yield c.Wait(self.at("do_empty", g), free)
            yield from _fetch(self.at("do_full", g), (f"dO{g}", self.do[s]), (f"delta{g}", self.rows[2 + s]))

    def _S(self, g):
        return c.Product(f"S{g}", ((self.kv[0], "K"), (self.q[g % 2], f"Q{g}")), FLOPS)

    def _weights(self, g):
        yield c.Arrive(self.at("q_empty", g))
        yield c.Compute(f"exp {g}", "exp", TILE * TILE, (f"S{g}",))
        yield c.Write(f"P{g}", self.p[g % 2], (f"S{g}",))
        yield c.Arrive(self.at("p_full", g))

    def _dV(self, g):
        return c.Product(f"dV{g}", ((self.do[g % 2], f"dO{g}"),), FLOPS, (f"S{g}",))

    def sum_dV(self) -> Iterator[c.Command]:
        """Be consumer 0."""
        yield c.Wait(self.barriers["k_full"], 0)
        yield self.there("q_full", 0)
        yield self._S(0)
        yield c.Finish()
        yield c.Read("lse0", self.rows[0])
        yield from self._weights(0)
        for g in range(1, self.n):
            yield self.there("do_full", g - 1)
            yield self.there("q_full", g)
            yield self._S(g)
            yield self._dV(g - 1)
            yield c.Read(f"lse{g}", self.rows[g % 2])
            yield c.Finish(1)
            yield from self._weights(g)
            yield c.Finish()
            yield c.Arrive(self.at("do_empty", g - 1))
        yield self.there("do_full", self.n - 1)
        yield self._dV(self.n - 1)
        yield c.Finish()
        yield from _store("dV", self.kv[0], (f"dV{self.n - 1}",))

    def _dP(self, g):
        return c.Product(f"dP{g}", ((self.kv[1], "V"), (self.do[g % 2], f"dO{g}")), FLOPS)

    def _slopes(self, g):
        yield c.Arrive(self.at("do_empty", g))
        yield self.there("p_full", g)
        yield c.Read(f"P{g}", self.p[g % 2])
        yield c.Compute(f"dS {g}", "fma", 2 * TILE * TILE, (f"dP{g}",))

    def _dK(self, g):
        return c.Product(f"dK{g}", ((self.q[g % 2], f"Q{g}"),), FLOPS, (f"dP{g}",))

    def sum_dK(self) -> Iterator[c.Command]:
        """Be consumer 1."""
        yield c.Wait(self.barriers["v_full"], 0)
        yield self.there("do_full", 0)
        yield self._dP(0)
        yield c.Finish()
        yield c.Read("delta0", self.rows[2])
        yield from self._slopes(0)
        for g in range(1, self.n):
            yield self.there("q_full", g - 1)
            yield self._dK(g - 1)
            yield self.there("do_full", g)
            yield self._dP(g)
            yield c.Read(f"delta{g}", self.rows[2 + g % 2])
            yield c.Finish(1)
            yield c.Arrive(self.at("q_empty", g - 1))
            yield c.Finish()
            yield from self._slopes(g)
        yield self.there("q_full", self.n - 1)
        yield self._dK(self.n - 1)
        yield c.Finish()
        yield from _store("dK", self.kv[1], (f"dK{self.n - 1}",))


def dkv(n: int) -> c.Program:
    """Return a producer and two consumers of the pass for dK and dV; n: how many tiles of rows see the keys."""
    made = Keys(n)
    roles = {"producer": made.producer, "consumer 0": made.sum_dV, "consumer 1": made.sum_dK}
    slots = (*made.kv, *made.q, *made.do, *made.rows, *made.p)
    return c.Program(roles, tuple(made.barriers.values()), slots)


class Rows:
    """The pass for dQ: 128 rows, and n tiles of keys that they see."""

    def __init__(self, n: int) -> None:
        check_counts(at_least=1, n=n)
        self.n = n
        self.rows, self.keys = c.ring("rows", 4, BYTES), c.ring("keys", 3, BYTES)  # Q, then dO; K, then V
        once, twice = ("v_full", "v_empty"), ("rows_full", "k_full", "k_empty")
        self.barriers = _barriers(once, twice, ("k_empty", "v_empty"))

    def producer(self) -> Iterator[c.Command]:
        """Bring the rows' Q and dO once, and n tiles of K and V whenever a slot is free."""
        for t in range(self.n):
            s = t % 2
            yield c.Wait(self.barriers[f"k_empty[{s}]"], t // 2 % 2 ^ 1)
            yield from _fetch(self.barriers[f"k_full[{s}]"], (f"K{t}", self.keys[s]))
            for at in range(0 if t else CONSUMERS):
                tiles = (f"Q.{at}", self.rows[at]), (f"dO.{at}", self.rows[CONSUMERS + at])
                yield from _fetch(self.barriers[f"rows_full[{at}]"], *tiles)
            yield c.Wait(self.barriers["v_empty"], t % 2 ^ 1)
            yield from _fetch(self.barriers["v_full"], (f"V{t}", self.keys[2]))

    def _begin(self, me, t):
        q, do = (self.rows[me], f"Q.{me}"), (self.rows[CONSUMERS + me], f"dO.{me}")
        yield c.Wait(self.barriers[f"k_full[{t % 2}]"], t // 2 % 2)
        yield c.Product(f"S{t}", (q, (self.keys[t % 2], f"K{t}")), FLOPS)
        yield c.Wait(self.barriers["v_full"], t % 2)
        yield c.Product(f"dP{t}", (do, (self.keys[2], f"V{t}")), FLOPS)

    def _slopes(self, t):
        yield c.Finish(1)
        yield c.Compute(f"exp {t}", "exp", TILE * TILE, (f"S{t}",))
        yield c.Finish()
        yield c.Arrive(self.barriers["v_empty"])
        yield c.Compute(f"dS {t}", "fma", 2 * TILE * TILE, (f"dP{t}",))

    def _dQ(self, t):
        return c.Product(f"dQ{t}", ((self.keys[t % 2], f"K{t}"),), FLOPS, (f"dP{t}",))

    def consumer(self, me: int) -> Iterator[c.Command]:
        """Sum dQ of 64 rows."""
        yield c.Wait(self.barriers[f"rows_full[{me}]"], 0)
        yield from self._begin(me, 0)
        yield from self._slopes(0)
        for t in range(1, self.n):
            yield self._dQ(t - 1)
            yield from self._begin(me, t)
            yield c.Finish(2)
            yield c.Arrive(self.barriers[f"k_empty[{(t - 1) % 2}]"])
            yield from self._slopes(t)
        yield self._dQ(self.n - 1)
        yield c.Finish()
        yield from _store(f"dQ.{me}", self.rows[me], (f"dQ{self.n - 1}",))


def dq(n: int) -> c.Program:
    """Return a producer and two consumers of the pass for dQ; n: how many tiles of keys the rows see."""
    made = Rows(n)
    roles = {f"consumer {me}": functools.partial(made.consumer, me) for me in range(CONSUMERS)}
    slots = (*made.rows, *made.keys)
    return c.Program({"producer": made.producer, **roles}, tuple(made.barriers.values()), slots)
