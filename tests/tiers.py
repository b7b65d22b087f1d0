"""Which tests are long: `make test` leaves them out, and `make test-all` runs everything.

A test is long by rule, which depends on where it is and what it needs; nobody marks it by hand.

place       a test in the browser is long, unless it is one of all widgets together, of a saved page or of the
            site, with or without Python
process     a test that starts a new Python or Jupyter is long (marker `process`)
amount      of a test with `few` cases and `all` of them, `all` is long
cases       of a test with several lists of parameters, only so many cases are short that each entry of each list
            occurs, with as many pairs of entries as these cases can have ("each choice")
compiles    of a test that uses the compiler (marker `compiles`), one case is short, or one for each kernel if a
            parameter names the kernel; without cases the test is long
"""

from collections import Counter, defaultdict
from itertools import combinations

BROWSER = "tests/browser/"
IN_ALL_WIDGETS = (
    "test_every_setting.py", "test_every_widget.py", "test_saved_page.py", "test_site.py", "test_site_offline.py",
    "test_site_search.py", "test_live.py",
)  # fmt: skip


def long(items) -> set:
    """Return the node ids of those `items` of pytest that are long."""
    cases = defaultdict(list)
    for item in items:  # cases for a GPU are separate: a machine runs either those or the others
        cases[item.nodeid.partition("[")[0], bool(item.get_closest_marker("gpu"))].append(item)
    short = {item.nodeid for of_one in cases.values() for item in _short(of_one)}
    return {item.nodeid for item in items} - short


def _short(items):
    """Return the short cases of one test."""
    items = [item for item in items if not _is_long(item)]
    asks = items and items[0].get_closest_marker("compiles")
    if not all(hasattr(item, "callspec") for item in items):
        return [] if asks else items
    if asks:
        name = asks.kwargs.get("each")
        first = {item.callspec.params.get(name): item for item in reversed(items)}
        return list(first.values())
    return covering(items, [entries(item) for item in items])


def _is_long(item):
    path = item.nodeid.partition("::")[0]
    return (
        path.startswith(BROWSER)
        and not path.endswith(IN_ALL_WIDGETS)
        or item.get_closest_marker("process") is not None
        or hasattr(item, "callspec")
        and item.callspec.params.get("amount") == "all"
    )


def entries(item) -> set:
    """Return the entries that a case has in its lists of parameters: {(names, values)}."""
    left, found = dict(item.callspec.params), set()
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs["argnames"]
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
        found.add((tuple(names), tuple(id(left.pop(name, None)) for name in names)))
    return found | {((name,), (id(value),)) for name, value in left.items()}


def amounts(entries, few) -> list:
    """Return (amount, entry) of each entry, for the parameters "amount, name" of a test: `few` are short."""
    entries = list(entries)
    assert all(entry in entries for entry in few), f"{few} are not all among {entries}"
    return [("few" if entry in few else "all", entry) for entry in entries]


def covering(cases, having) -> list:
    """Return few of the cases in which all of their entries occur. having: the set of entries of each case.

    Greedy: the next case has the most new entries; of equal ones, the most pairs of entries that have not met; of
    equal ones, that whose entries occurred least so far.
    """
    if all(len(entries) == 1 for entries in having):  # of one list: the same, in no time
        first = {}
        for case, entries in zip(cases, having, strict=True):
            first.setdefault(*entries, case)
        return list(first.values())
    left, used, met, chosen = dict(enumerate(having)), Counter(), set(), []
    while left:
        new, _, _, n = max(
            (len(h - used.keys()), len(_pairs(h) - met), -sum(used[e] for e in h), -n) for n, h in left.items()
        )
        if not new:
            break
        chosen.append(cases[-n])
        met |= _pairs(left[-n])
        used.update(left.pop(-n))
    return chosen


def _pairs(entries):
    return set(map(frozenset, combinations(entries, 2)))
