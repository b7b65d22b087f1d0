"""Groups of ranks that share heads: which heads each member computes, and which rows it holds.

Rank r is member r % size of group r // size. The groups form a ring: each holds what one rank of a ring would, and
its members hold that in pieces, one after the other. Heads need not divide evenly: some members have one more, or
none. K and V of a head go to every member that has a head of Q which reads them.
"""

from flashlib.inputs import check_counts
from flashlib.masks.runs import Runs, count
from flashlib.ring import layouts
from flashlib.ring.hops import sliced


def check_group(ranks: int, heads: int) -> int:
    """Return how many ranks share heads; raise TypeError or ValueError unless that divides the number of ranks."""
    check_counts(at_least=1, ranks=ranks, heads=heads)
    if ranks % heads:
        raise ValueError(f"heads is {heads}, and there are {ranks} ranks: groups of {heads} do not divide them")
    return int(heads)


def own_heads(H: int, size: int, member: int) -> range:
    """Return the heads of a member of a group, of H heads in all."""
    return range(member * H // size, (member + 1) * H // size)


def kv_heads(heads: range, H: int, H_k: int) -> range:
    """Return the heads of K and V, of H_k in all, that these heads of Q read, of H in all."""
    return range(heads[0] * H_k // H, heads[-1] * H_k // H + 1) if heads else range(0)


def runs(N: int, P: int, r: int, layout: str, size: int) -> Runs:
    """Return the tokens of rank r of P in groups of `size`: a piece of what its group holds."""
    return pieces(layouts.runs(N, P // size, r // size, layout), size)[r % size]


def pieces(held: Runs, size: int) -> list[Runs]:
    """Return what each member of a group holds of the group's tokens."""
    return [sliced(held, slice(m * count(held) // size, (m + 1) * count(held) // size)) for m in range(size)]
