"""What RingPlayer shows: bars by time, scores by rank, blocks in their places, a row, and each layout."""

import re

import numpy as np
import pytest

from flashlib.pictures.number_text import number
from flashlib.widgets import RingPlayer
from tests.browser.labs import plain, text, wait_for
from tests.browser.shown.drawn import boxes, marked

LANES = """player => {
    const svg = player.querySelector(".flash-ring-lanes");
    const of = (name) => [...svg.querySelectorAll(`.flash-ring-${name}`)].map((path) => path.getAttribute("d"));
    return {
        ...Object.fromEntries(["compute", "copy", "idle", "asked", "wrong"].map((name) => [name, of(name)])),
        texts: [...svg.querySelectorAll("text")].map((text) =>
            [text.textContent, Number(text.getAttribute("x")), Number(text.getAttribute("y"))]),
        high: svg.viewBox.baseVal.height,
    };
}"""
SCORES = """player => [...player.querySelectorAll(".flash-ring-scores [data-pair]")].map((path) =>
    [path.dataset.pair.split(" ").map(Number), path.getAttribute("d")])"""
NOW = """(player, position) => {
    player.flashWidget.transport.seek(position);
    const circle = player.querySelector(".flash-ring-circle");
    const nodes = [...circle.querySelectorAll(".flash-ring-node")];
    const whose = (parent, of) =>
        [...parent.querySelectorAll(`[data-whose]${of}`)].map((e) => Number(e.dataset.whose));
    return {
        sentence: player.querySelector(".flash-ring-sentence > p").textContent,
        status: player.querySelector(".flash-status").textContent,
        cursor: player.querySelector(".flash-ring-cursor").transform.baseVal[0].matrix.e,
        cover: Number(player.querySelector(".flash-ring-cover").getAttribute("x")),
        busy: nodes.map((e) => e.classList.contains("flash-ring-busy")),
        held: nodes.map((node) => whose(node.parentElement, "")),
        used: nodes.map((node) => whose(node.parentElement, ":has(.flash-ring-used)")),
        flying: [...circle.querySelectorAll("[data-whose]:has(.flash-ring-flying)")].map((e) =>
            [Number(e.dataset.whose), e.transform.baseVal[0].matrix.e, e.transform.baseVal[0].matrix.f]),
        nodes: nodes.map((e) => ["x", "y", "width", "height"].map((side) => Number(e.getAttribute(side)))),
        scores: Object.fromEntries([...player.querySelectorAll("[data-pair]")].map((e) =>
            [e.dataset.pair, e.getAttribute("class").replace("flash-ring-", "")])),
        rows: [...player.querySelectorAll(".flash-ring-merges tbody tr")].filter((e) => e.ariaHidden !== "true")
            .map((row) => [...row.children].map((cell) => cell.textContent)),
    };
}"""


def check(player):
    check_shown(player)


def check_shown(player, program=None):
    """The page shows what Python computes for its setting."""
    before = player.evaluate("player => player.flashWidget.transport.position")
    setting = player.evaluate("player => player.flashWidget.result.setting")
    wait_for(player, setting)
    named = {("layout" if name == "cut" else name): value for name, value in setting.items()}
    r = RingPlayer(**named, program=program).result
    check_words(player, r)
    x = check_lanes(player.evaluate(LANES), r)
    check_scores(player.evaluate(SCORES), r)
    last = len(r["times"]) - 1
    for position in sorted({0, last // 5, last // 3, r["opens"], last - 1, last}):
        check_time(player.evaluate(NOW, position), r, position, x)
    check_row(player, r)
    player.evaluate("(player, at) => player.flashWidget.transport.seek(at)", before)


def check_words(player, r):
    assert text(player, ".flash-ring-time > p:nth-of-type(1)") == plain(r["words"][0])
    assert text(player, ".flash-ring-time > p:nth-of-type(2)") == plain(r["words"][1])
    assert plain(r["words"][2]) in text(player, ".flash-ring-state")
    assert marked(player) == [r["times"].index(time) for time, _ in r["moments"]]
    fault = player.locator(".flash-ring-fault")
    assert fault.is_visible() == (r["fault"] is not None)
    if r["fault"]:
        assert fault.locator("p").all_inner_texts() == [
            "×" * (not k) + s for k, s in enumerate(r["fault"]["said"])
        ]
    cards = player.locator(".flash-ring-card")
    for k, one in enumerate(r["compare"]):
        shown = cards.nth(k).inner_text()
        assert one["layout"] in shown and (one["fault"] or f"{one['sums']['total']:.4g}") in shown
        assert cards.nth(k).get_attribute("aria-pressed") == str(one["layout"] == r["setting"]["cut"]).lower()
        if not one["fault"]:
            assert (
                f"{one['sums']['sent']} B" in shown
                and f"idle {100 * one['sums']['idle']:.1f}".rstrip("0").rstrip(".") in shown
            )


def check_lanes(drawn, r):
    """Each bar is on the lane of its rank, at its times on the axis. Returns the function from a time to its x."""
    axis = max(y for _, _, y in drawn["texts"])
    ticks = sorted((float(words), x) for words, x, y in drawn["texts"] if y == axis and words != "time")
    (low, left), (high, right) = ticks[0], ticks[-1]
    assert low == 0 and high <= r["end"] and len(ticks) >= 2
    lane = {int(words[5:]): y for words, _, y in drawn["texts"] if re.fullmatch(r"rank \d", words)}
    assert len(lane) == r["setting"]["ranks"]

    def x(time):
        return left + (right - left) * time / high

    def place(start, stop):
        return pytest.approx([x(start), x(min(stop, r["end"])) - x(start)], abs=3.1)  # px between bars

    def shown(name):
        """For each mark of a kind the rank, the left end, the width, and the distance below the rank's name."""
        found = []
        for box in (box for d in drawn[name] for box in boxes(d or "")):
            rank = max((k for k in lane if lane[k] - 13 <= box[1]), key=lambda k: lane[k])
            found.append((rank, round(box[0], 1), box[2] - box[0]))
        return sorted(found)

    computes = [(k, a, b) for k, own in enumerate(r["computes"]) for _, _, a, b, _ in own if b > a]
    copies = [(to, a, b) for _, to, _, a, b, _ in r["copies"] if b > a]
    idle = [(k, a, b) for k, own in enumerate(r["idle"]) for a, b, _ in own]
    asked = [(k, at, r["end"]) for k, _, _, at in r["asked"]]
    for name, spans in (("compute", computes), ("copy", copies), ("idle", idle), ("asked", asked)):
        found = shown(name)
        assert len(found) == len(spans), name
        for (rank, at, wide), (of, start, stop) in zip(found, sorted(spans), strict=True):
            assert rank == of and [at, wide] == place(start, stop), name
    wrong = sum(bool(d) for d in drawn["wrong"])
    assert wrong == (0 if not r["fault"] else len(lane) if r["fault"]["rank"] < 0 else 1)
    return x


def check_scores(drawn, r):
    """Each seen score is in the block of the ranks of its row and its key, and no other score is."""
    N, P = r["setting"]["N"], r["setting"]["ranks"]
    rank = np.zeros(N, int)
    for k, own in enumerate(r["tokens"]):
        rank[own] = k
    seen = np.zeros((N, N), bool)
    for row, ranges in enumerate(r["seen"]):
        for first, end in ranges:
            seen[row, first:end] = True
    found, cell = np.full((N, N), -1), 256 / N
    for (of_row, of_key), d in drawn:
        for left, top, right, bottom in boxes(d):
            first, row, end, below = ((at - 18) / cell for at in (left, top, right, bottom))
            assert below - row == pytest.approx(1, abs=1e-3)
            part = found[round(row), round(first) : round(end)]
            assert (part == -1).all() and len(part) == pytest.approx(end - first, abs=1e-3)
            part[:] = of_row * P + of_key
    assert np.array_equal(found, np.where(seen, rank[:, None] * P + rank[None], -1))


def check_time(now, r, position, x):
    """At a time: who computes with what, which keys are where or on their way, and which scores are done."""
    time, end = r["times"][position], r["end"]
    of = re.fullmatch(r"time (\S+) (and for ever|of (\S+))", now["status"])
    assert of and float(of[1]) == pytest.approx(time, rel=6e-4)
    if time == end and end > r["sums"]["total"]:  # ranks wait, and the axis shows only the beginning of it
        assert of[2] == "and for ever"
    else:
        assert float(of[3]) == pytest.approx(end, rel=6e-4)
    k = max(k for k, (since, _) in enumerate(r["moments"]) if since <= time)
    since, said = r["moments"][k]
    assert plain(now["sentence"]) == plain(f"Now: {r['goes_on'][k] if since < time else said}")
    assert now["cursor"] == pytest.approx(x(time), abs=0.5) == now["cover"]
    for rank, own in enumerate(r["computes"]):
        with_ = [source for source, _, start, stop, _ in own if start <= time < stop]
        assert now["used"][rank] == with_ and now["busy"][rank] == bool(with_)
        held = [w for w, start, stop in r["held"][rank] if start <= time and (time < stop or stop == end == time)]
        assert now["held"][rank] == list(dict.fromkeys(held))
        done = {source for source, _, _, stop, _ in own if stop <= time}
        for source in range(r["setting"]["ranks"]):
            state = "done" if source in done else "now" if source in with_ else "todo"
            assert now["scores"].get(f"{rank} {source}", state) == state
    flying = [(copy, (time - copy[3]) / (copy[4] - copy[3])) for copy in r["copies"] if copy[3] <= time < copy[4]]
    assert len(flying) == len(now["flying"])
    middles = [(left + wide / 2, top + high / 2) for left, top, wide, high in now["nodes"]]
    for (copy, way), (whose, *at) in zip(flying, now["flying"], strict=True):
        assert whose == copy[2]
        to_start, to_end = (np.hypot(*np.subtract(at, middles[end])) for end in copy[:2])
        assert (to_start < to_end) == (way < 0.5) or abs(way - 0.5) < 0.05


def check_row(player, r):
    """The chosen row: its State after each hop, according to the numbers that Python sent."""
    row = int(player.get_attribute("data-row"))
    rank = next(k for k, own in enumerate(r["tokens"]) if row in own)
    assert text(player, ".flash-ring-state h3") == f"Row {row}, of rank {rank}"
    numbers, at, D = np.frombuffer(r["buffer"], "<f8"), 0, r["D"]
    sizes = [len(own) * (2 + D) for own in r["tokens"]]
    at = sum(size * len(own) for size, own in zip(sizes[:rank], r["computes"][:rank], strict=True))
    place = r["tokens"][rank].index(row) * (2 + D)
    for position in (r["opens"], len(r["times"]) - 1):
        shown, before, time = player.evaluate(NOW, position)["rows"], -np.inf, r["times"][position]
        own = [one for one in r["computes"][rank] if one[3] <= time]
        assert len(shown) == len(own)
        for k, (source, hop, *_) in enumerate(own):
            m, l, *O_acc = numbers[at + k * sizes[rank] + place :][: 2 + D]
            alpha, before = 1.0 if m == -np.inf else np.exp(before - m), m
            assert shown[k] == [number(value) for value in (hop, source, alpha, m, l, np.hypot.reduce(O_acc))]
