"""What PipelinePlayer shows: a mark for each span of its rows, the spans at a time, and the cursor there."""

from collections import Counter

import pytest

from tests.browser.shown.drawn import boxes

FILLED, NAMED = (
    ("product", "exp", "fma"),
    ("copy", "store", "write", "product", "exp", "fma", "wait", "fill", "hold"),
)
PICTURE = """player => {
    const svg = player.querySelector(".flash-pipelining-rows");
    return {
        paths: [...svg.querySelectorAll("path")].map((path) =>
            [path.getAttribute("class").replace("flash-pipelining-", ""), path.getAttribute("d")]),
        texts: [...svg.querySelectorAll("text")].map((text) =>
            [text.firstChild?.data ?? "", Number(text.getAttribute("x")), Number(text.getAttribute("y")),
             text.getAttribute("text-anchor")]),
        label: svg.getAttribute("aria-label"),
    };
}"""
NOW = """(player, [position, next]) => {
    const { transport, zoom } = player.flashWidget;
    zoom.whole();
    transport.seek(position);
    if (next) player.dispatchEvent(new KeyboardEvent("keydown", { key: "]", bubbles: true }));
    const svg = player.querySelector(".flash-pipelining-rows");
    const cover = svg.querySelector(".flash-pipelining-cover");
    return {
        words: player.querySelector(".flash-pipelining-sentence > p").flashText,
        status: player.querySelector(".flash-status").textContent,
        cursor: svg.querySelector(".flash-pipelining-cursor").transform.baseVal[0].matrix.e,
        cover: ["x", "width"].map((side) => Number(cover.getAttribute(side))),
        nows: player.flashWidget.rows[0].nows.map((text) => text.textContent),
    };
}"""


ALPHA = """player => [...player.querySelectorAll(".flash-pipelining-alpha")]
    .filter((one) => !one.hidden).map((one) => one.textContent)"""
LEGEND = """player => [...player.querySelectorAll(".flash-legend path")].map(
    (path) => path.getAttribute("class").replace("flash-pipelining-", ""))"""
UNITS = {"exp": "exponentials", "fma": "multiply-adds (fma)"}
STEPS = 120  # positions of an axis of clocks, evenly spaced


def check(player):
    player.evaluate("player => { player.flashWidget.transport.seek(0); player.flashWidget.zoom.whole(); }")
    result = player.evaluate("player => player.flashWidget.model.get('result')")
    (program,) = result["programs"]
    if not player.evaluate("player => player.flashWidget.whole"):  # the switch is off
        program["rows"] = [row for row in program["rows"] if row["group"] in ("units", "roles")]
    picture = player.evaluate(PICTURE)
    check_legend(player.evaluate(LEGEND), picture)
    check_alpha(player.evaluate(ALPHA), program["rows"])
    x = check_picture(picture, result, program)
    assert player.evaluate("player => player.flashWidget.transport.last") == STEPS
    assert STEPS <= 30 * float(player.locator(".flash-speed").input_value()), "it plays in half a minute"
    for position in (0, STEPS // 5, STEPS // 3, STEPS // 2, STEPS - 3, STEPS):
        time = result["end"] * position / STEPS
        check_moment(player.evaluate(NOW, [position, False]), result, program, time, x)
        event = next((at for at in result["events"] if at > time), time)
        check_moment(player.evaluate(NOW, [position, True]), result, program, event, x)
    check_zoom(player, result["end"])


def check_legend(legend, picture):
    """It has each mark that is drawn, and no other; the faint part and the line are named too."""
    drawn = {name for name, _ in picture["paths"]} - {"edge", "odd"}
    assert {name for name in legend if name not in ("edge", "any", "cover")} == drawn
    assert {"cover", "cursor"} <= set(legend)


def check_alpha(said, rows):
    """Alpha and what it multiplies are explained once where a rescale is drawn, and only there."""
    rescales = any(kind == "fma" and name.startswith("rescale") for row in rows for kind, name, *_ in row["spans"])
    assert len(said) == rescales and all("Oacc by alpha = exp(mold − m)" in one for one in said)


def check_zoom(player, end):
    """In shows half as much, out twice as much, all everything; the shown part is stated."""
    view = "player => player.flashWidget.zoom.view"
    wide = [end]
    for name in ("zoom in (+)", "zoom in (+)", "zoom out (−)", "the whole axis (0)"):
        player.get_by_role("button", name=name, exact=True).click()
        start, stop = player.evaluate(view)
        assert f"{start:.0f} to {stop:.0f}" in player.locator(".flash-pipelining-zoom").inner_text()
        wide.append(stop - start)
    assert wide == pytest.approx([end, end / 2, end / 4, end / 2, end])


def check_picture(picture, result, program):
    """Each span is drawn on its row, from start to end on the axis. Returns the function from a time to its x."""
    rows = program["rows"]
    assert picture["label"] == program["words"]
    axis = max(y for _, _, y, _ in picture["texts"])
    ticks = sorted((int(text), x) for text, x, y, anchor in picture["texts"] if y == axis and anchor == "middle")
    (low, left), (high, right) = ticks[0], ticks[-1]
    steps = {b - a for (a, _), (b, _) in zip(ticks, ticks[1:], strict=False)}
    assert len(steps) == 1 and 4 <= len(ticks) <= 10 and high + steps.pop() > result["end"] >= high

    def x(time):
        return left + (time - low) * (right - left) / (high - low)

    names = [(text, y) for text, at, y, _ in picture["texts"] if at == 0 and y < axis]
    assert len(names) == len(rows)
    for (text, _), row in zip(names, rows, strict=True):
        busy = f" {100 * row['use']:.0f}%" if row["name"] and "use" in row and result["axis"] == "clocks" else ""
        meaning = program["meanings"].get(row["name"]) if row["group"] == "barriers" else None
        assert text == UNITS.get(row["name"], row["name"]) + (f" {meaning}" if meaning else "") + busy
    feet = [y for _, y in names]
    drawn = Counter()
    for name, d in picture["paths"]:
        if name not in ("edge", "odd", "cursor"):
            for a, up, b, down in boxes(d):
                row = min(range(len(rows)), key=lambda k: abs(feet[k] - 4 - (up + down) / 2))
                assert feet[row] - 12.1 <= up <= down <= feet[row] + 4.1
                drawn[name, row, round(a), round(b)] += 1
    expected = [
        (name_of(kind, role), n, x(start), max(x(start) + 1.2, x(end)))
        for n, row in enumerate(rows)
        for kind, _, start, end, role in row["spans"]
    ]
    expected += [("tick", n, x(at), x(at)) for n, row in enumerate(rows) for at, _ in row["ticks"]]
    assert sum(drawn.values()) == len(expected)
    for name, row, a, b in expected:
        near = [(name, row, round(a) + i, round(b) + j) for i in (0, 1, -1) for j in (0, 1, -1)]
        assert any(drawn[one] for one in near), (name, row, a, b)
    check_names(picture, program, feet, x, axis)
    check_phases(picture, rows, result["end"], x)
    return x


def name_of(kind, role):
    return f"role{role % 5}" if kind in FILLED else {"write": "store"}.get(kind, kind)


def in_words(program, kind, name):
    """A barrier that is waited for has its meaning in words, if it is one of the course's kernels'."""
    return program["meanings"].get(name, name) if kind == "wait" else name


def check_names(picture, program, feet, x, axis):
    """A name is in the middle of its span, and none is left out where there is ample room."""
    rows = program["rows"]
    texts = [(text, at, y) for text, at, y, anchor in picture["texts"] if anchor == "middle" and y < axis]
    spans = [
        (feet[n], kind, in_words(program, kind, name), *rest)
        for n, row in enumerate(rows)
        for kind, name, *rest in row["spans"]
        if kind in NAMED
    ]
    for text, at, y in texts:
        assert any(
            text == name and abs(y - foot) < 2 and abs(at - (x(start) + x(end)) / 2) < 1
            for foot, _, name, start, end, _ in spans
        ), text
    roomy = [one for one in spans if x(one[4]) - x(one[3]) > 8 * len(one[2]) + 6]
    assert len(roomy) <= len(texts) <= len(spans)


def check_phases(picture, rows, end, x):
    """While an odd phase of a barrier is on, its row is shaded."""
    shaded = [box for name, d in picture["paths"] if name == "odd" for box in boxes(d)]
    times = [[at for at, _ in row["ticks"]] + [end] for row in rows]
    expected = [(a, b) for ticks in times for a, b in zip(ticks[:-1:2], ticks[1::2], strict=False)]
    found = sorted((a, b) for a, _, b, _ in shaded)
    for (a, b), (start, stop) in zip(found, sorted(expected), strict=True):
        assert [a, b] == pytest.approx([x(start), x(stop)], abs=0.2)


def check_moment(shown, result, program, time, x):
    """The sentence, the time and the rows' activities are those of a time; later events are covered."""
    end = result["end"]
    at, words = [moment for moment in program["moments"] if moment[0] <= time + 0.005][-1]
    if at == program["end"]:
        assert shown["words"] == f"Now: {words}"
    elif round(time) <= round(at):
        told, _, besides = shown["words"].partition(" Meanwhile ")
        assert told == f"Now: {words}"
        check_state(f"Now: {besides or 'nobody.'}", program, lambda start, stop: start < at < stop, products=False)
        assert words.count("tensor cores multiply") <= 1
    else:
        check_state(shown["words"], program, lambda start, stop: start <= time < stop)
    assert shown["status"] == f"clock {time:.0f} of {end:.0f}"
    assert shown["cursor"] == pytest.approx(x(time), abs=0.2)
    left, width = shown["cover"]
    assert [left, left + width] == pytest.approx([x(time), x(end)], abs=0.2)
    for row, now in zip(program["rows"], shown["nows"], strict=True):
        if row["group"] == "barriers":
            phase = sum(at <= time for at, _ in row["ticks"])
            assert now == f"phase {phase}, parity {phase % 2}"
        else:
            on = [(kind, name, role) for kind, name, start, stop, role in row["spans"] if start <= time < stop]
            assert (now == "") == (not on)
            kind, name, role = ([one for one in on if one[0] == "read"] or on or [("", "", 0)])[0]
            words = {
                "wait": f"waits: {in_words(program, 'wait', name)}",
                "fill": f"{name} comes",
                "read": f"{name} is read",
            }.get(kind, name)
            if row["group"] == "units" and name:
                words += f", {program['roles'][role]}"
            assert now == (words if len(words) <= 20 else f"{words[:19]}…")


def check_state(said, program, is_on, products=True):
    """A sentence in the present tense says who multiplies and computes: between two events, or besides one.

    products: whether these are mentioned here.
    """
    on = [
        (row["group"], kind, name, program["roles"][role])
        for row in program["rows"]
        for kind, name, start, stop, role in row["spans"]
        if is_on(start, stop)
    ]
    multiply = [f"tensor cores multiply {name} for {role}" for _, kind, name, role in on if kind == "product"]
    multiply = multiply if products else []
    work = [(name, role) for group, kind, name, role in on if group == "roles" and kind in ("exp", "fma")]
    assert said.startswith("Now: ") and said.endswith(".") and "ago" not in said
    assert all(one in said for one in multiply) and said.count(" multiply ") == len(multiply)
    assert all(f"{role} computes “{name}”" in said for name, role in work) and said.count("“") == len(work)
    assert said.count("O_acc times alpha") == sum(name.startswith("rescale") for name, _ in work)
