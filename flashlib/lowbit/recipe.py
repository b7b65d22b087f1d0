"""What an attention rounds to eight bits, and how: the switches, and recipes in use."""

from numbers import Real
from typing import NamedTuple

from flashlib.inputs import check_block_sizes
from flashlib.lowbit.formats import check_format
from flashlib.lowbit.scales import check_share

QK_SHARES = ("none", "tensor", "head", "block", "row")
V_SHARES = ("none", "tensor", "head", "channel")  # scales that can be applied after the sum over keys
S_SUMS = ("exact", "13 bits")
O_SUMS = ("exact", "13 bits", "two levels")
L_FROM = ("exact", "rounded")


class Recipe(NamedTuple):
    """What is rounded, and how. A format is a name in FORMATS, or None for no rounding.

    qk, p, v, o: the formats of Q and K, P, V and O. qk_share, v_share: which numbers share a scale in an eight-bit
    format, see `scales`; in V, a head or a channel can. block: rows in a "block". power_of_two: whether scales are
    powers of two. rotate: whether Q and K are rotated first. k_minus_mean: whether the mean of K over the keys is
    subtracted, which changes all scores of a row equally, so that softmax does not notice. v_minus_mean: whether
    that of V is; it is added to O again. p_times: the factor by which P, from 0 to 1, is multiplied before
    rounding. l_from: whether l is the sum of P before rounding ("exact") or after ("rounded"). s_sums, o_sums: how
    Q K^T and P V are summed: "exact", as in `sums` ("13 bits") or, for P V, like that within each tile and exactly
    over tiles ("two levels").
    """

    qk: str | None = "e4m3"
    p: str | None = "e4m3"
    v: str | None = "e4m3"
    o: str | None = "bf16"
    qk_share: str = "head"
    v_share: str = "head"
    block: int = 64
    power_of_two: bool = False
    rotate: bool = False
    k_minus_mean: bool = False
    v_minus_mean: bool = False
    p_times: float = 256.0
    l_from: str = "exact"
    s_sums: str = "13 bits"
    o_sums: str = "13 bits"


EXACT = Recipe(qk=None, p=None, v=None, o=None, s_sums="exact", o_sums="exact")
PLAIN = Recipe()
CAREFUL = Recipe(rotate=True, k_minus_mean=True, v_minus_mean=True, o_sums="two levels")
INT8 = CAREFUL._replace(qk="int8", s_sums="exact")  # integers are added in 32 bits, without rounding
OUTPUT_TOO = Recipe(qk_share="tensor", v_share="tensor", o="e4m3")

CAUSES = {
    "inputs": ("qk",),
    "S": ("s_sums",),
    "P": ("p",),
    "V": ("v",),
    "sums": ("o_sums",),
    "O": ("o",),
}
"""{cause of error: the fields of a Recipe that leave only this cause}"""

CAUSE_NAMES = {
    "inputs": "Q and K",
    "S": "sums of Q K^T",
    "P": "P",
    "V": "V",
    "sums": "sums of P V",
    "O": "O",
}
"""{cause of error: what a table or a message calls it}"""


def alone(recipe: Recipe, cause: str) -> Recipe:
    """Return the recipe in which only one cause of CAUSES remains, and everything else is exact."""
    if cause not in CAUSES:
        raise ValueError(f"cause is {cause!r}; accepted are {', '.join(map(repr, CAUSES))}")
    fields = {field for others in CAUSES.values() for field in others} - set(CAUSES[cause])
    return recipe._replace(**{field: getattr(EXACT, field) for field in fields})


def check_recipe(recipe: Recipe) -> None:
    """Raise TypeError or ValueError, with what is accepted, for a recipe that makes no sense."""
    if not isinstance(recipe, Recipe):
        raise TypeError(f"recipe is of type {type(recipe).__name__}; pass a lowbit.Recipe, e.g. lowbit.CAREFUL")
    for name in ("qk", "p", "v", "o"):
        if getattr(recipe, name) is not None:
            check_format(name, getattr(recipe, name))
    accepted = {"qk_share": QK_SHARES, "v_share": V_SHARES, "l_from": L_FROM, "s_sums": S_SUMS, "o_sums": O_SUMS}
    for name, words in accepted.items():
        check_share(name, getattr(recipe, name), words)
    if recipe.qk == "int8" and recipe.s_sums != "exact":
        raise ValueError(
            "s_sums is '13 bits' with qk='int8'; whole numbers are added exactly: pass s_sums='exact'"
        )
    check_block_sizes(block=recipe.block)
    for name in ("power_of_two", "rotate", "k_minus_mean", "v_minus_mean"):
        if not isinstance(getattr(recipe, name), bool):
            raise TypeError(f"{name} is {getattr(recipe, name)!r}; pass True or False")
    times, top = recipe.p_times, check_format("p", recipe.p).largest if recipe.p else float("inf")
    if isinstance(times, bool) or not isinstance(times, Real):
        raise TypeError(f"p_times is {times!r}; pass a positive number")
    if not 0 < times <= min(top, 2.0**30):
        raise ValueError(
            f"p_times is {times}; the largest of P becomes it, so with p={recipe.p!r} at most {top:g}"
        )
