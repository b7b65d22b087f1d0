"""The scenarios of PagesLab: what requests demand of an allocator, operation by operation."""

from typing import NamedTuple

from flashlib.language.phrases import by_number

SYSTEM = tuple(range(100, 118))  # a prompt with which several requests begin
GUESSES = 5  # of one step of speculation


class Op(NamedTuple):
    """One operation, on the sequence with this name.

    method: one of the allocator's; "rest", append for the tokens that `start` did not know; or "resume", start and
    append for a sequence that was put off.
    """

    method: str
    name: str
    n: int = 0  # tokens without ids, to append or to drop
    tokens: tuple = ()  # ids
    of: str = ""  # the sequence that is forked
    why: str = ""  # the sentence shown first


def script(scenario: str, n_pages: int, page: int) -> list[Op]:
    """Return the operations of a scenario."""
    return SCENARIOS[scenario](n_pages, page)


def needs(scenario: str) -> set[str]:
    """Return the methods of an allocator that a scenario calls."""
    methods = {op.method for op in script(scenario, 8, 4)} - {"rest", "resume"}
    return methods | {"start", "append", "free"}  # free: used when no page is left


def gives_tokens(scenario: str) -> bool:
    """Return whether the scenario passes prompts to `start`."""
    return any(op.tokens for op in script(scenario, 8, 4))


def longest(ops: list[Op]) -> int:
    """Return the length of the longest sequence that operations create."""
    lengths, most = {}, 0
    for op in ops:
        match op.method:
            case "start":
                lengths[op.name] = 0
            case "rest":
                lengths[op.name] = len(op.tokens)
            case "append":
                lengths[op.name] += op.n
            case "drop":
                lengths[op.name] -= op.n
            case "fork":
                lengths[op.name] = lengths[op.of]
        most = max(most, lengths[op.name])
    return most


def names(ops: list[Op]) -> list[str]:
    """Return the names of the sequences in the order in which they begin."""
    return list(dict.fromkeys(op.name for op in ops))


def _begin(name, n):
    return [Op("start", name, why="A request comes."), Op("append", name, n, why="Its prompt is appended.")]


def _prompt(name, tokens, why):
    return [Op("start", name, tokens=tokens, why=why), Op("rest", name, tokens=tokens)]


def _grow(names, n=1):
    return [Op("append", name, n) for name in names]


def _end(*names):
    return [Op("free", name, why="Its answer is complete.") for name in names]


def _come_and_go(n_pages, page):
    return [
        *(*_begin("A", 5), *_begin("B", 17), *_grow("ABA"), *_begin("C", 3)),
        *(*_grow("ABC", 3), *_end("A"), *_begin("D", 7), *_grow("BC", 4)),
        *(*_end("C"), *_begin("E", 9), *_grow("DEB", 3), *_end("D", "B", "E")),
    ]


def _shared_prompt(n_pages, page):
    first = "A request comes. Others will begin with the same 18 tokens."
    same, other = "A request comes that begins with the same 18 tokens.", "A request comes with another prompt."
    D = "After all others ended, one more request begins with the same 18 tokens."
    return [
        *(*_prompt("A", (*SYSTEM, *range(200, 205)), first), *_grow("A", 2)),
        *(*_prompt("B", (*SYSTEM, *range(300, 303)), same), *_grow("B", 3)),
        *(*_prompt("C", (*SYSTEM, *range(400, 407)), same), *_end("A"), *_grow("BC", 2), *_end("B", "C")),
        *(*_prompt("D", (*SYSTEM, *range(500, 504)), D), *_grow("D", 3), *_end("D")),
        *(*_prompt("E", tuple(range(600, 645)), other), *_end("E")),
    ]


def _fork(n_pages, page):
    fork = "One more answer to the same prompt."
    return [
        *_begin("A", 11),
        *(Op("fork", "B", of="A", why=fork), Op("fork", "C", of="A", why=fork)),
        *(*_grow("BCA"), *_grow("BCA", 4), *_end("C")),
        Op("fork", "D", of="B", why="This answer is good so far, so it goes on in two ways."),
        *(*_grow("D", 2), *_grow("B", 5), *_end("A", "B"), *_grow("D", 2), *_end("D")),
    ]


def _out_of_pages(n_pages, page):
    rows = n_pages * page
    n = max(1, rows // 12)
    return [
        *(*_begin("A", rows * 3 // 10), *_begin("B", rows * 3 // 10), *_begin("C", max(1, rows // 5))),
        *(*_grow("ABC", n), *_grow("ABC", n), *_end("A")),
        Op("resume", "C", why="There is room again, so C starts over: what was computed of it is computed again."),
        *(*_grow("C", n), *_end("B", "C")),
    ]


def _speculation(n_pages, page):
    rejected = {"A": (3, 0, 4, 1), "B": (1, 5, 2, 0)}
    ops = [*_begin("A", 9), *_begin("B", 6)]
    for step in range(4):
        for name, counts in rejected.items():
            ops.append(Op("append", name, GUESSES, why=f"{GUESSES} guesses of a small model are tried at once."))
            if n := counts[step]:
                ops.append(Op("drop", name, n, why=_dropped(GUESSES - n)))
    return [*ops, *_end("A", "B")]


def _dropped(right):
    """Return the sentence on guesses of which this many were right."""
    if not right:
        return "None was right; the others are dropped."
    several = f"{right} of them were right; the others are dropped."
    return by_number(right, "1 of them was right; the others are dropped.", several)


SCENARIOS = {
    "requests come and go": _come_and_go,
    "a shared prompt": _shared_prompt,
    "fork and copy on write": _fork,
    "out of pages": _out_of_pages,
    "speculation": _speculation,
}
