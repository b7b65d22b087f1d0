"""What PagesLab shows: for each frame the pages, the tables and the counts that Python sent."""

import pytest

from flashlib.widgets import PagesLab

STATES = {"f": "free", "k": "kept"}
# Everything that one frame shows.
SHOWN = """(lab) => {
    const text = (selector) => lab.querySelector(selector).innerText;
    const all = (selector, read) => [...lab.querySelectorAll(selector)].map(read);
    const pages = all(".flash-paging-page", (page) => ({
        state: page.dataset.state,
        whose: page.querySelector(".flash-paging-whose").innerText,
        mark: page.querySelector(".flash-paging-mark").innerText,
        label: page.getAttribute("aria-label"),
        rows: [...page.querySelectorAll(".flash-paging-rows > i")].map(
            (row) => row.className.replace("flash-paging-", ""),
        ),
    }));
    const tables = all(".flash-paging-tables > div", (row) => ({
        label: row.getAttribute("aria-label"),
        chips: [...row.querySelectorAll(".flash-paging-chip:not(.flash-paging-none)")].map((chip) => [
            Number(chip.innerText), parseFloat(chip.querySelector("b > i").style.width),
        ]),
    }));
    const counts = all(".flash-paging-counts > div", (row) => row.innerText);
    const bars = all(".flash-paging-bar > i", ({ style }) => parseFloat(style.width || style.left));
    return {
        pages, tables, counts, bars, call: text(".flash-paging-call"), words: text(".flash-paging-sentence p"),
        status: text(".flash-status"), used: text(".flash-paging-pages .flash-note"),
    };
}"""

EVERY = f"""(lab) => Array.from({{ length: lab.flashWidget.transport.last + 1 }}, (_, k) => {{
    lab.flashWidget.transport.seek(k);
    return ({SHOWN})(lab);
}})"""


def check_frame(shown, frame, result):
    """The page shows the frame that Python sent."""
    page, counts = result["setting"]["page"], frame["counts"]
    assert shown["call"] == (frame["call"] or "end")
    assert shown["words"] == ("✕ " if frame["kind"] == "fault" else "") + frame["words"]
    assert shown["used"] == f"{counts['used']} used, {counts['kept']} kept, {counts['free']} free"
    for number, one in enumerate(shown["pages"]):
        assert one["state"] == frame["state"][number]
        assert one["whose"] == STATES.get(one["state"], frame["owners"].split(",")[number])
        assert one["label"].startswith(f"page {number}: ") and one["label"].endswith(one["mark"])
        written = {row for of, first, end in frame["written"] for row in range(first, end) if of == number}
        filled = frame["filled"][number]
        kinds = ["written" if row in written else "filled" if row < filled else "" for row in range(page)]
        assert one["rows"] == kinds
    for name, row in zip(result["names"], shown["tables"], strict=True):
        own, length = frame["tables"].get(name, []), frame["lengths"].get(name, 0)
        fills = [min(page, length - i * page) * 100 / page for i in range(len(own))]
        assert row["chips"] == [[one, pytest.approx(fill)] for one, fill in zip(own, fills, strict=True)]
        assert row["label"].startswith(f"{name}: {length} token" if name in frame["tables"] else f"{name}: ")
    in_pages, reserved = shown["counts"]
    assert f"{counts['rows']} rows for {counts['tokens']} tokens" in in_pages
    assert f"\n{counts['waste']} empty" in in_pages and f"\n{counts['reserved_waste']} empty" in reserved
    assert f"{len(frame['tables'])} × {result['longest']} = {counts['reserved']} rows" in reserved
    rows = page * result["setting"]["n_pages"]
    most = max([rows, *(one["counts"]["reserved"] for one in result["frames"])])
    parts = counts["filled"], counts["waste"], rows, counts["tokens"], counts["reserved_waste"], rows
    assert shown["bars"] == [pytest.approx(100 * part / most, abs=0.01) for part in parts]


def check(lab):
    result = PagesLab(**lab.evaluate("lab => lab.flashWidget.result.setting")).result
    every = lab.evaluate(EVERY)
    for k, (shown, frame) in enumerate(zip(every, result["frames"], strict=True)):
        assert shown["status"] == f"step {k} of {len(every) - 1}"
        check_frame(shown, frame, result)
