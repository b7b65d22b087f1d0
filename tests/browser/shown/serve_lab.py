"""What ServeLab shows: for both runs a mark for what a request does in a step, bars, tables and sentences."""

import pytest

from tests.browser.shown.drawn import boxes, marked

MARKS = {"w": "wait", "p": "read", "a": "again", "i": "held", "x": "preempted", "e": "empty"}
STRIPS = {"slots": ["decode", "reading", "held"], "tokens": ["decode", "read"], "pages": ["used", "kept"]}
PICTURE = """(lab, k) => {
    const svg = lab.querySelectorAll(".flash-serving-lanes")[k];
    return {
        paths: [...svg.querySelectorAll("path")].map((path) =>
            [path.getAttribute("class").replace("flash-serving-", ""), path.getAttribute("d")]),
        texts: [...svg.querySelectorAll("text")].map((text) =>
            [text.textContent, Number(text.getAttribute("x")), Number(text.getAttribute("y")),
             text.getAttribute("text-anchor")]),
        label: svg.getAttribute("aria-label"),
    };
}"""
NOW = """(lab, position) => {
    lab.flashWidget.transport.seek(position);
    const read = (svg, name) => ["x", "width"].map((side) =>
        Number(svg.querySelector(`.flash-serving-${name}`).getAttribute(side)));
    return {
        words: [...lab.querySelectorAll(".flash-serving-sentence > p:first-child")].map((p) => p.textContent),
        marks: [...lab.querySelectorAll(".flash-serving-lanes")].map((svg) =>
            ["behind", "cursor", "cover"].map((name) => read(svg, name))),
        now: [...lab.querySelectorAll(".flash-serving-now tbody tr")].map((row) =>
            [...row.children].map((cell) => cell.textContent)),
        all: [...lab.querySelectorAll(".flash-serving-all tbody tr")].map((row) =>
            [...row.children].map((cell) => cell.textContent)),
        status: lab.querySelector(".flash-status").textContent,
        text: lab.innerText,
    };
}"""


def check(lab):
    result = lab.evaluate("lab => lab.flashWidget.model.get('result')")
    pictures = [lab.evaluate(PICTURE, k) for k in range(len(result["runs"]))]
    ticks = check_axis(pictures[-1]["texts"], result["steps"])
    places = [check_picture(*one, result, ticks) for one in zip(pictures, result["runs"], strict=True)]
    lanes = [lane for run in result["runs"] for lane in run["lanes"]]
    assert sorted(marked(lab)) == sorted({step for lane in lanes for step, one in enumerate(lane) if one == "x"})
    for position in (0, result["steps"] // 2, result["steps"] - 1):
        check_step(lab.evaluate(NOW, position), result, position, places)


def check_axis(texts, steps):
    """Return the places of the steps on the axis that both runs share, below the last."""
    axis = max(y for _, _, y, _ in texts)
    ticks = {int(text): x for text, x, y, anchor in texts if y == axis and anchor == "middle"}
    assert set(ticks) >= {0} and max(ticks) < steps
    return ticks


def check_picture(picture, run, result, ticks):
    """Each mark is in its step, by the numbers of the axis, and next to the name of its request.

    Returns the x of the middle of step 0 and the width of a step.
    """
    assert picture["label"] == run["words"]
    lanes = len(result["requests"])
    names = [f"{k}: {one['prompt']} + {one['answer']}" for k, one in enumerate(result["requests"])]
    where = {text: y for text, _, y, anchor in picture["texts"] if anchor == "start"}
    last = max(ticks)
    wide = (ticks[last] - ticks[0]) / last
    high = (where[names[-1]] - where[names[0]]) / (lanes - 1)
    top = where[names[0]] + 4 - high  # above the bottom of its text

    def place(box):
        """The lane and the step of a mark."""
        left, up, right, down = box
        step, lane = (left + right) / 2, (up + down) / 2
        k, j = round((lane - top) / high - 0.5), round((step - ticks[0]) / wide)
        assert abs(step - ticks[0] - j * wide) <= wide / 2 and right - left <= wide + 0.1 and down - up <= high
        return k, j

    paths = dict(picture["paths"][: len(MARKS) + 3])
    for letter, name in MARKS.items():
        expected = [(k, j) for k, lane in enumerate(run["lanes"]) for j, one in enumerate(lane) if one == letter]
        assert sorted(map(place, boxes(paths[name]))) == expected, name
    ends = sorted(place(box) for box in boxes(paths["end"]))
    assert ends == list(enumerate(run["last"]))
    check_tokens(picture, run, place)
    check_strips(picture["paths"][len(MARKS) + 3 :], result, run, wide, ticks[0] - wide / 2)
    return ticks[0], wide


def check_tokens(picture, run, place):
    """A token is a box; one that is written at the end of a prompt is at the bottom of the prompt's box."""
    decoded, feet = ([place(box) for box in boxes(d)] for name, d in picture["paths"] if name == "token")
    assert sorted(decoded) == [
        (k, j) for k, lane in enumerate(run["lanes"]) for j, one in enumerate(lane) if one == "d"
    ]
    assert sorted(feet) == [(k, step) for k, parts in enumerate(run["parts"]) for step, _, wrote in parts if wrote]
    read = {(k, step): str(n) for k, parts in enumerate(run["parts"]) for step, n, _ in parts}
    below = max(y for text, _, y, _ in picture["texts"] if ": " in text)  # the names of requests and of strips
    numbers = [one for one in picture["texts"] if one[3] == "middle" and one[2] < below]
    shown = {place((x, y - 7, x, y)): text for text, x, y, _ in numbers}
    assert len(shown) == len(numbers) and shown.items() <= read.items()
    assert {at for at, text in read.items() if len(text) == 1} <= shown.keys() or not shown


def check_strips(paths, result, run, wide, start):
    """Bars are stacked in a frame whose height is the whole capacity and whose width is the run."""
    all_of = {"slots": result["setting"]["batch"], "tokens": result["most"], "pages": result["setting"]["n_pages"]}
    for name, parts in STRIPS.items():
        (kind, d), bars, paths = paths[0], paths[1 : 1 + len(parts)], paths[1 + len(parts) :]
        assert kind == "frame"
        [(left, top, right, bottom)] = boxes(d)
        assert [left, right] == pytest.approx([start, start + run["steps"] * wide], abs=0.1)
        unit = (bottom - top) / all_of[name]
        drawn = [{round((box[0] + box[2] - 2 * start) / 2 / wide - 0.5): box for box in boxes(d)} for _, d in bars]
        for step, frame in enumerate(run["frames"][: run["steps"]]):
            frame = frame | {"held": frame["taken"] - frame["decode"] - frame["reading"]}
            foot = bottom
            for part, found in zip(parts, drawn, strict=True):
                assert (step in found) == (frame[part] > 0), (name, part, step)
                foot -= frame[part] * unit
                if step in found:
                    _, up, _, down = found[step]
                    assert up == pytest.approx(foot + 0.5, abs=0.6)
                    assert down == pytest.approx(foot + frame[part] * unit - 0.5, abs=0.6)
    assert paths == []


def check_step(shown, result, position, places):
    """Sentences and numbers are those of the step; the cursor is on it, and later steps are covered."""
    frames, batch = [run["frames"][position] for run in result["runs"]], result["setting"]["batch"]
    assert shown["status"] == f"step {position} of {result['steps'] - 1}"
    assert shown["words"] == [frame["words"] for frame in frames]
    assert shown["all"] == result["totals"] and result["equal"] in shown["text"]
    names = ("decode", "read", "taken", "wait", "used", "kept", "free")
    numbers = [[f"{frame[name]}" + f" of {batch}" * (name == "taken") for frame in frames] for name in names]
    assert [row[1:] for row in shown["now"]] == numbers
    for (middle, wide), (behind, cursor, (left, width)) in zip(places, shown["marks"], strict=True):
        assert behind == cursor == pytest.approx([middle + (position - 0.5) * wide, wide], abs=0.1)
        assert left == pytest.approx(middle + (position + 0.5) * wide, abs=0.1)
        assert left + width == pytest.approx(middle + (result["steps"] - 0.5) * wide, abs=0.1)
