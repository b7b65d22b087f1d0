"""What OverflowLab shows: Python's numbers and marks for its setting."""

import numpy as np

from flashlib.pictures.number_text import number
from flashlib.widgets.overflow_lab.overflow_lab import OverflowLab
from flashlib.widgets.overflow_lab.row_softmax import COLUMNS


def cells(lab, name):
    """The texts and the marks of a column of the table, or of a sum."""
    found = lab.locator(f"td[data-name={name}]")
    return found.locator(".flash-overflow-number").all_inner_texts(), found.evaluate_all(
        "cells => cells.map((cell) => cell.dataset.mark)"
    )


def value(text):
    return float(text.replace("−", "-"))


def four_digits(x):
    return float(f"{x:.3e}")


def assert_shown(lab, setting):
    """Every number and mark in the table is Python's for this setting."""
    result = OverflowLab(**setting).result
    numbers = np.frombuffer(result["buffer"], "<f8")
    for k, name in enumerate(COLUMNS):
        texts, marks = cells(lab, name)
        expected = numbers[k * result["n"] :][: result["n"]]
        if name == "x":
            assert texts == result["scores"]
        else:
            assert np.array_equal(list(map(value, texts)), list(map(four_digits, expected)), equal_nan=True), name
        assert marks == result["marks"].get(name, [""] * result["n"])
    _, l, l_safe, naive_total, safe_total, *_ = numbers[len(COLUMNS) * result["n"] :]
    for name, x in dict(l=l, l_safe=l_safe, naive_total=naive_total, safe_total=safe_total).items():
        (text,), marks = cells(lab, name)
        assert np.array_equal(value(text), four_digits(x), equal_nan=True) and marks == result["marks"][name]
    words = [text.replace("_", "") for text in result["words"]]  # the part after the underscore is a subscript
    assert lab.locator(".flash-overflow-words p").all_inner_texts() == words
    assert lab.locator(".flash-overflow-x b").inner_text() == result["x"][1]


def check_bars(lab, setting):
    """Bars reach from 1 to the terms and their sum, on the logarithmic axis; diamonds are the safe terms."""
    result = OverflowLab(**setting).result
    low, high = (end + result["shift"] for end in result["range"])
    zones = lab.locator(".flash-overflow-zones").bounding_box()

    def place(log):
        return zones["x"] + zones["width"] * np.clip((log - low) / (high - low), 0, 1)

    numbers = np.frombuffer(result["buffer"], "<f8")
    column = lambda name: numbers[COLUMNS.index(name) * result["n"] :][: result["n"]]  # noqa: E731
    logs, safe = [*column("x"), numbers[-2]], [*column("shifted"), numbers[-1]]
    tracks = lab.locator(".flash-overflow-track")
    edges = tracks.evaluate_all(
        """tracks => tracks.map((track) => ["bar", "diamond"].flatMap((name) => {
            const { left, right } = track.querySelector(`.flash-overflow-${name}`).getBoundingClientRect();
            return [left, right];
        }))"""
    )
    for (left, right, *diamond), log, log_safe in zip(edges, logs, safe, strict=True):
        assert np.allclose([left, right], sorted([place(0), place(log)]), atol=2)
        assert abs(sum(diamond) / 2 - place(log_safe)) < 2
    shown = [lab.locator(f"i[data-zone={name}]").first.bounding_box() for name in ("subnormal", "normal", "high")]
    for name, words in (("smallest", "smallest"), ("normal", "normal from"), ("largest", "largest")):
        said, x = lab.locator(f"[data-limit={name}]").inner_text(), result["limits"][name][1]
        assert said in (f"{words} {number(x)}", f"{words} {x:.0f}")
    assert lab.locator("[data-limit=one]").inner_text().replace("\u00a0", " ") == "exp(0) = 1"
    for zone, name in zip(shown, ("smallest", "normal", "largest"), strict=True):
        assert abs(zone["x"] - place(result["limits"][name][0])) < 2
    right = shown[-1]["x"] + shown[-1]["width"]
    assert abs(right - zones["x"] - zones["width"]) < 2


def check(lab):
    shown = lab.evaluate("lab => ({ ...lab.dataset })")
    setting = {"x": float(shown["x"]), "dtype": shown["dtype"], "copies": int(shown["copies"])}
    assert_shown(lab, setting)
    check_bars(lab, setting)
    check_steps(lab, setting)


def check_steps(lab, setting):
    """The buttons next to x go to the previous and the next number of the format, and back."""
    here, (before, after) = setting["x"], [x for x, _ in OverflowLab(**setting).result["neighbours"]]
    for name, x in (("previous", before), ("next", here), ("next", after), ("previous", here)):
        lab.locator(f".flash-overflow-{name}").click()
        lab.page.wait_for_function(
            "([lab, x]) => Number(lab.dataset.x) === x", arg=[lab.element_handle(), x], timeout=10_000
        )
