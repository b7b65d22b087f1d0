"""Which cases of flash_attn's tests run: some thousands out of half a million, by a fixed rule.

There are two kinds of parameters. Those in `KERNEL` decide which kernels are compiled; their values come from the
rows of a table in which each pair of values occurs. The other parameters are combined with these rows until every
possible pair of values of any two parameters of a test has occurred. Then the cases with the fewest scores follow,
until a test has its share. The test for a race condition runs one case for each value, since one takes as long as
hundreds of others.
"""

import itertools
import math
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

KERNEL = "d", "dtype", "causal", "local", "alibi", "dropout_p", "softcap"
SHARES = {
    "test_flash_attn_qkvpacked": 600,
    "test_flash_attn_varlen_qkvpacked": 600,
    "test_flash_attn_output": 1100,
    "test_flash_attn_varlen_output": 1100,
    "test_flash_attn_causal": 340,
    "test_flash_attn_varlen_causal": 440,
    "test_flash_attn_splitkv": 460,
    "test_flash_attn_kvcache": 1020,
    "test_flash_attn_race_condition": 24,
    "test_flash_attn_bwd_overflow": 30,
    "test_flash_attn_bwd_transpose": 32,
    "test_flash_attn_bwd_varlen_overflow": 6,
    "test_flash_attn_deterministic": 300,
    "test_flash_attn_varlen_deterministic": 300,
}
LOOKED_AT = 2000  # random cases of a test, among which to find some that have each pair
DRAWN = 10000  # cases of a test that does not need the table
FEW = 8  # with at most so many kernels, no table is needed
ONCE = ("test_flash_attn_race_condition",)
WHOLE = (*ONCE, "test_flash_attn_kvcache")  # causal and local compile nothing there


class Parameters(NamedTuple):
    """The parameters of a test: names that are set together, and the tuples of their values."""

    names: list[tuple[str, ...]]
    values: list[list[tuple]]

    def cases(self) -> Iterator[tuple]:
        return itertools.product(*self.values)

    def called(self, case: tuple) -> dict[str, Any]:
        """Return the arguments of a case."""
        return {
            name: x for names, xs in zip(self.names, case, strict=True) for name, x in zip(names, xs, strict=True)
        }


def parameters(test: Callable) -> Parameters:
    """Return the parameters of a test, from its marks."""
    marks = [mark.args for mark in reversed(test.pytestmark) if mark.name == "parametrize"]
    names = [tuple(name.strip() for name in given.split(",")) for given, _ in marks]
    values = [[x if len(n) > 1 else (x,) for x in given] for n, (_, given) in zip(names, marks, strict=True)]
    return Parameters(names, values)


def fits(case: dict) -> bool:
    """Return whether a test runs this case, and does not skip it."""
    if case.get("softcap") and case.get("dropout_p"):
        return False
    looked_at = "mha_type" in case and case.get("dropout_p") and not case["alibi"] and not case["local"]
    if looked_at and case["seqlen_q"] == 1:
        return False  # with so few weights, the share dropped by chance fails the test in one case of eight
    new, paged = case.get("new_kv", True), case.get("paged_kv_block_size")
    if not new and case.get("rotary_fraction"):
        return False
    if paged is not None and case.get("has_leftpad"):
        return False
    return not ("new_kv" in case and new and case["seqlen_q"] > case["seqlen_k"])


def pairs(case: tuple) -> set:
    """Return the pairs of values of a case, with the numbers of the parameters."""
    return set(itertools.combinations(enumerate(case), 2))


def covering(cases: list[tuple]) -> list[tuple]:
    """Return some of the cases, chosen greedily, in which every pair of values of the cases occurs."""
    wanted, found, left = set().union(*map(pairs, cases)), [], list(cases)
    of = {case: pairs(case) for case in left}
    while wanted:
        best = max(left, key=lambda case: len(of[case] & wanted))
        found.append(best)
        wanted -= of[best]
    return found


def rows(tests: list[Parameters]) -> list[dict]:
    """Return the table of kernels: rows of values of `KERNEL` for all tests, in which each pair occurs."""
    values = {}
    for given in tests:
        for names, of in zip(given.names, given.values, strict=True):
            if names[0] in KERNEL:
                values.setdefault(names[0], []).extend(x for (x,) in of if x not in values.get(names[0], []))
    product = ({n: x for n, x in zip(values, case, strict=True)} for case in itertools.product(*values.values()))
    named = {tuple(case.values()): case for case in product if fits(case)}
    shuffled = random.Random(0).sample(list(named), len(named))
    return [named[case] for case in covering(shuffled)]


def chosen(name: str, given: Parameters, table: list[dict]) -> list[dict]:
    """Return the cases of a test."""
    share = SHARES[name]
    cases = [case for case in _cases(given, table, whole=name in WHOLE) if fits(given.called(case))]
    random.Random(name).shuffle(cases)
    cases.sort(key=lambda case: scores(given.called(case)))
    if len(cases) <= share:
        return list(map(given.called, cases))
    drawn = random.Random(0).sample(cases, min(len(cases), LOOKED_AT))
    found = _each_value(cases) if name in ONCE else covering(drawn)
    taken = set(found)
    left = (case for case in cases if case not in taken)
    return list(map(given.called, [*found, *itertools.islice(left, max(share - len(found), 0))]))


def _cases(given, table, whole):
    """Return a test's cases with kernels of the table; if whole, or with few kernels, a sample of all cases."""
    at = [k for k, names in enumerate(given.names) if names[0] in KERNEL]
    if whole or math.prod(len(given.values[k]) for k in at) <= FEW:
        rng = random.Random(0)
        if math.prod(map(len, given.values)) <= DRAWN:
            return list(given.cases())
        return list(dict.fromkeys(tuple(map(rng.choice, given.values)) for _ in range(DRAWN)))
    rows = dict.fromkeys(tuple((row[given.names[k][0]],) for k in at) for row in table)
    of_kernel = (dict(zip(at, row, strict=True)) for row in rows)
    known = [row for row in of_kernel if all(x in given.values[k] for k, x in row.items())]
    return [
        case
        for row in known
        for case in itertools.product(*([row[k]] if k in row else of for k, of in enumerate(given.values)))
    ]


def _each_value(cases):
    """Return cases in which each value occurs, the cheapest first."""
    wanted, found = {item for case in cases for item in enumerate(case)}, []
    for case in cases:
        if wanted & set(enumerate(case)):
            found.append(case)
            wanted -= set(enumerate(case))
    return found


def scores(case: dict) -> int:
    """Return about how many scores a case computes."""
    longest = case.get("seqlen")
    return (longest * longest if longest else case.get("seqlen_q", 256) * case.get("seqlen_k", 256)) * case["d"]
