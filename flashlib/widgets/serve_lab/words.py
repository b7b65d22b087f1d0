"""The sentences of ServeLab."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flashlib.language.phrases import and_list, by_number, counted
from flashlib.pictures.number_text import number

if TYPE_CHECKING:  # it imports torch
    from flashlib.lm.server import StepRecord

DONE = "All requests have finished."
NAMES = {True: "continuous", False: "static"}


def step(
    record: "StepRecord",
    arrived: list[int],
    known: list[tuple[int, int]],
    again: dict[int, int],
    firsts: list[int],
    read: list[int],
    why: str,
) -> str:
    """Return sentences on what a step does.

    arrived: requests. known: (request, how many tokens the cache had). again: for each request, how many tokens
    are computed a second time. firsts: requests that write their first token. read: those whose prompt is
    finished. why: why requests wait.
    """
    sentences = []
    if arrived:
        who = named(arrived)
        sentences.append(by_number(len(arrived), f"{who} arrives.", f"{who} arrive."))
    if record.preempted:
        who = named(sorted(record.preempted))
        one = f"{who} is preempted: too few pages were free."
        sentences.append(by_number(len(record.preempted), one, f"{who} are preempted: too few pages were free."))
    sentences += [f"{n} tokens of {named([k]).lower()} are in the cache already." for k, n in known]
    if record.decoded:
        who = named(record.decoded)
        sentences.append(by_number(len(record.decoded), f"{who} decodes.", f"{who} decode."))
    wrote = dict(record.wrote)
    sentences += [_chunk(k, n, again[k], k in read, k in firsts, k in wrote) for k, n in record.chunks]
    if record.finished:
        who = named(sorted(record.finished))
        sentences.append(by_number(len(record.finished), f"{who} is finished.", f"{who} are finished."))
    if record.waiting:
        who = named(record.waiting)
        sentences.append(by_number(len(record.waiting), f"{who} waits: {why}.", f"{who} wait: {why}."))
    return " ".join(sentences) or "There is nothing to do."


def _chunk(k, n, again, read, first, wrote) -> str:
    if again:
        one, several = f"1 token of request {k} is computed again", f"{n} tokens of request {k} are computed again"
    elif read:
        one = f"The last token of request {k}'s prompt is read"
        several = f"The last {n} tokens of request {k}'s prompt are read"
    else:
        one, several = f"1 token of request {k}'s prompt is read", f"{n} tokens of request {k}'s prompt are read"
    sentence = by_number(n, one, several)
    if not wrote:
        return f"{sentence}."
    if first:
        return f"{sentence}, and its first token is written."
    return f"{sentence}, and its next token is written."


def all_taken(batch: int) -> str:
    return f"all {batch} slots are taken" if batch > 1 else "the slot is taken"


def not_done(empty: int) -> str:
    several = f"{empty} slots are empty, but the batch is not done"
    return by_number(empty, "1 slot is empty, but the batch is not done", several)


def no_pages(k: int) -> str:
    return f"too few pages are free for request {k}"


def totals(sums: list) -> list[list[str]]:
    """Return the rows of the table: the name of a count, and its value in each run."""
    rows = {
        "steps": lambda s: s.steps,
        "tokens written a step": lambda s: s.written / s.steps,
        "first token after, mean": lambda s: mean(s.waits),
        "the same, at most": lambda s: max(s.waits),
        "steps with an empty slot": lambda s: s.empty,
        "of these, while one waits": lambda s: s.idle,
        "most tokens in a step": lambda s: s.most,
        "tokens already cached": lambda s: s.known,
        "preemptions": lambda s: s.preempted,
        "tokens computed again": lambda s: s.again,
    }
    return [[name, *(number(of(one)) for one in sums)] for name, of in rows.items()]


def equal(same: bool, requests: int) -> str:
    if same:
        return f"All {requests} requests write the same tokens in both: a scheduler decides when, not what."
    return "Requests write different tokens in the two runs, which is wrong."


def run(continuous: bool, sums: Any) -> str:
    """Return a sentence on a run."""
    name = f"{NAMES[continuous]} batching".capitalize()
    waits = f"a request has its first token after {number(mean(sums.waits))} steps, at most {max(sums.waits)}"
    rate = f"{sums.steps} steps, {number(sums.written / sums.steps)} tokens a step"
    idle = counted(sums.idle, "step", "steps")
    sentence = f"{name}: {rate}; {waits}; {idle} with an empty slot while one waits"
    if sums.preempted:
        return f"{sentence}; {counted(sums.preempted, 'preemption', 'preemptions')}."
    return f"{sentence}."


def mean(values: list[int]) -> float:
    return sum(values) / len(values)


def named(numbers: Sequence[int]) -> str:
    """Return requests as "Request 3" or "Requests 0, 2 and 3"."""
    names = and_list(map(str, numbers))
    return f"Requests {names}" if len(numbers) > 1 else f"Request {names}"
