"""The sentences of SplitLab."""

from flashlib.gpus import GPUS
from flashlib.language.phrases import by_number, counted, or_list
from flashlib.pictures.number_text import brief, number
from flashlib.widgets.split_lab import model
from flashlib.widgets.split_lab.model import DecodeCall, Time

ORDERS = {"row": "in a row", "tree": "as a tree"}


def parts(setting: dict, ranges: list[list[int]]) -> str:
    """Return sentences on how the keys are split."""
    N_k, asked, n = setting["N_k"], setting["parts"], len(ranges)
    tiles = model.tiles_of(N_k)
    sizes = sorted({-(-(end - begin) // model.B_C) for begin, end in ranges})
    cut = f"{counted(tiles, 'tile', 'tiles')} of {model.B_C}"
    if n > 1:
        sentence = f"{N_k} keys are {cut}, in {n} parts of {or_list(map(str, sizes))}."
    else:
        sentence = by_number(N_k, f"1 key is {cut}, in one part.", f"{N_k} keys are {cut}, in one part.")
    if n >= asked:
        return sentence
    most = counted(-(-tiles // asked), "tile", "tiles")
    return f"{sentence} {asked} parts were requested; with at most {most} in each, {n} are enough."


def merges(setting: dict, call: DecodeCall, n: int, depth: int) -> str:
    """Return sentences on the order in which the parts are merged."""
    if n == 1:
        return "There is one part, and nothing to merge."
    order = ORDERS[setting["order"]].capitalize()
    after = "all one after another" if depth == n - 1 else f"no more than {depth} one after another"
    sentence = f"{order}: {counted(n - 1, 'merge', 'merges')}, {after}."
    if setting["order"] != "row":
        return sentence
    return f"{sentence} The kernel merges up to {call.joined} parts in one step."


def busy(call: DecodeCall, n: int) -> str:
    """Return sentences on how much of the GPU the call occupies."""
    sms, (waves, last) = GPUS[call.gpu].sms, call.waves(n)
    programs = call.programs(n)
    sentence = f"{counted(programs, 'program', 'programs')} on the {sms} multiprocessors of the {call.gpu}"
    if programs < sms:
        idle = sms - programs
        return f"{sentence}: {idle} of these have nothing to do, {brief(100 * idle / sms, 2)}%."
    if waves == 1:
        return f"{sentence}: all are busy, in one wave."
    return f"{sentence}, {call.places} at a time: {waves} waves, {last} in the last."


def time(call: DecodeCall, n: int, curve: list[tuple[int, Time]]) -> str:
    """Return the model's time, compared with one part, the best number of parts, and decode's choice."""
    now, one, least = (microseconds(x) for x in (call.time(n).total, call.time(1).total, fastest(curve)[1]))
    sentence = f"By the model {now}"
    if now != one:
        sentence = _against(sentence, call.time(n).total, call.time(1).total)
    if now == least:
        return f"{sentence}; no other number of parts is faster."
    best, own = marked(call, n, curve), microseconds(dict(curve)[call.default].total)
    if best is None:
        return f"{sentence}. None is faster than decode's {counted(call.default, 'part', 'parts')}: {own}."
    fastest_is = by_number(best, f"1 part is fastest: {least}", f"{best} parts are fastest: {least}")
    if call.default == n:
        return f"{sentence}. {fastest_is}."
    return f"{sentence}. {fastest_is}; decode's {call.default} take {own}."


def _against(sentence, now, one):
    """Return the sentence with the speed relative to one part added."""
    if now <= one:
        return f"{sentence}, {brief(one / now, 2)} times as fast as one part"
    return f"{sentence}, {brief(now / one, 2)} times as long as one part"


def marked(call: DecodeCall, n: int, curve: list[tuple[int, Time]]) -> int | None:
    """Return the fastest number of parts; None if n, or decode's choice, is as fast to three digits."""
    best, least = fastest(curve)
    known = [call.time(n).total, dict(curve)[call.default].total]
    return None if microseconds(least) in map(microseconds, known) else best


def equal(difference: float) -> str:
    """Return a sentence on whether the merge equals attention in one go."""
    if difference == 0:
        return "Merged, O and lse equal attention in one go to the last bit."
    return f"Merged, O and lse equal attention in one go, up to rounding: {brief(difference, 1)}."


def explain(call: DecodeCall) -> list[str]:
    """Return the model in words."""
    gpu = GPUS[call.gpu]
    enough = gpu.bandwidth * model.LATENCY
    return [
        f"A program keeps {model.STAGES - 1} tiles of K and {model.STAGES - 1} of V in flight, "
        f"{number(call.in_flight / 1024)} KB. Under load bytes take about {microseconds(model.LATENCY)} to come, "
        "on an idle GPU about a fifth of that. "
        "By Little's law, in flight = rate × latency (Volkov, 2016), a program pulls at most "
        f"{number(call.pulls / 1e9)} GB/s.",
        f"The {gpu.name} gives {number(gpu.bandwidth / 1e12)} TB/s; for that "
        f"{counted(-(-enough // call.in_flight), 'program', 'programs', '.0f')} must run at once.",
        f"A launch takes {microseconds(model.LAUNCH)}; there are two, for the parts and for the merge. m, l and "
        f"O_acc of the parts are written and read, fp32, and merged {call.joined} at a time, a latency each.",
    ]


def fastest(curve: list[tuple[int, Time]]) -> tuple[int, float]:
    """Return the fastest number of parts, the smallest on a tie, and its seconds."""
    n, least = min(curve, key=lambda one: (one[1].total, one[0]))
    return n, least.total


def microseconds(seconds: float) -> str:
    """Return seconds as text: in microseconds, or in milliseconds if there are many."""
    size, unit = (1e3, "ms") if seconds >= 0.01 else (1e6, "µs")
    return f"{brief(seconds * size)}\u00a0{unit}"
