"""Measure, in JupyterLab and Chromium on this machine, how fast the widgets answer and play; print a table.

The exit code is 1 if a limit is exceeded (all of these are named at the end), for an error on the page, for a
request that left the machine, and for an answer to a different setting. The limits are for a modern laptop on
which nothing else runs. The time of an answer is given as the difference to a widget that draws nothing, which is
measured next to it, so that the time of JupyterLab and the browser does not count. The browser paints 60 times a
second, so an answer that just misses a paint is 17 ms late. While settings change, no debugger is attached to the
page: see `detached_browser`.

`python tools/measure_widgets.py RingPlayer MaskLab` measures only the changes of these.
"""

import os
import platform
import sys
import tempfile
import time
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for a script, this is tools/

from flashlib import widgets
from tests.browser import lab as browsing
from tests.browser import sizes
from tools import detached_browser

CHANGES = 24  # even together with WARM_UP: the last one leaves a setting other than the first one's
WARM_UP = 4  # changes before those that are measured
PAUSE = 1500  # ms before them: playwright detaches, and the page changes its size
LONGEST = 60  # seconds for all of them
PLAYED = 3  # seconds
STARTS = 5
RUNS = 20  # repeated runs of a cell, to see whether the page grows
LIMITS = {"rate": 58, "motion": 58, "start": 0.5, "growth": 2.0, "picture": 100}
LARGE = "FlashPlayer(N=64, d=16, B_r=8, B_c=8)"
MATRICES = "ProgramsLab('tile', BLOCK=2)"  # the code, which is long, is below what its controls change
# ms from a change to the paint of the answer, minus those of a widget that draws nothing.
PLAYERS, FIRST_LABS = (
    ("BackwardPlayer", "ComparePlayers", "FlashPlayer"),
    ("MergeTree", "OnlineSoftmaxLab", "OverflowLab"),
)
BEYOND = {LARGE: 15} | dict.fromkeys(PLAYERS, 10) | dict.fromkeys(FIRST_LABS, 6)
OTHERS = 12


class Control(NamedTuple):
    """A control that asks Python: two settings to alternate between, and the path to the answer's own setting."""

    label: str  # in the table
    steps: list  # [selector, value or None, name of the event, answer] for each
    path: list  # in the model, to the answer


def slider(name, values, path, selector=None):
    """Return the Control of a slider whose answer contains the values of its input."""
    selector = selector or f'.flash-settings input[type=range][data-name="{name}"]'
    return Control(f"slider {name}", [[selector, value, "input", value] for value in values], path)


def orders():
    buttons = [(f'button[data-name="{order}"]', order) for order in ("left to right", "balanced")]
    steps = [[selector, None, "click", order] for selector, order in buttons]
    return Control("buttons, two orders", steps, ["result", "setting", "order"])


def rows():
    steps = [["input[type=text]", text, "change", text] for text in ("1, 2, 3, 4", "4, 3, 2, 1")]
    return Control("text field x", steps, ["frames", "typed"])


def lines():
    steps = [['input[data-name="line"]', text, "change", text] for text in ("(r & c) == c", "(r - c) % 3 == 0")]
    return Control("text field line", steps, ["result", "setting", "line"])


def copies():
    selector = '.flash-settings input[type=range][data-name="copies"]'
    steps = [[selector, power, "input", 2**power] for power in (3, 4)]
    return Control("slider copies", steps, ["result", "asked", "copies"])


def stops():
    selector = '.flash-settings input[type=range][data-name="B_c"]'
    steps = [[selector, STOPS.index(B_c), "input", B_c] for B_c in (32, 128)]
    return Control("slider B_c", steps, ["result", "B_c"])


def rows_of_a_page():
    selector = '.flash-settings input[type=range][data-name="page"]'
    steps = [[selector, PAGES.index(page), "input", page] for page in (2, 16)]
    return Control("slider page", steps, ["result", "setting", "page"])


def parts():
    selector = '.flash-settings input[type=range][data-name="parts"]'
    steps = [[selector, PARTS.index(n), "input", n] for n in (16, 32)]
    return Control("slider parts", steps, ["result", "setting", "parts"])


def ranks():
    selector = '.flash-settings input[type=range][data-name="ranks"]'
    steps = [[selector, RANKS.index(n), "input", n] for n in (3, 4)]
    return Control("slider ranks", steps, ["result", "setting", "ranks"])


def outliers():
    selector = '.flash-settings input[type=range][data-name="outliers"]'
    steps = [[selector, OUTLIERS.index(size), "input", size] for size in (5, 20)]
    return Control("slider outliers", steps, ["result", "setting", "outliers"])


def blocks():
    selector = '.flash-settings input[type=range][data-name="N"]'
    return Control("slider N", [[selector, N, "input", N] for N in (15, 16)], ["result", "setting", "N"])


def slots():
    selector = '.flash-settings input[type=range][data-name="batch"]'
    steps = [[selector, SLOTS.index(batch), "input", batch] for batch in (3, 4)]
    return Control("slider batch", steps, ["result", "setting", "batch"])


# ServeLab caches its runs: here its cache is taken away. RingPlayer caches only what does not depend on the times,
# such as plans; alternating settings may use that.
FORGETFUL = "from flashlib.widgets.serve_lab import runs\nruns.run = runs.run.__wrapped__"
OUTLIERS = widgets.EightBitsLab().result["stops"]["outliers"]
PAGES = widgets.PagesLab().result["stops"]["page"]
PARTS = widgets.SplitLab(32_768).result["stops"]["parts"]
RANKS = widgets.RingPlayer().result["stops"]["ranks"]
SLOTS = widgets.ServeLab().result["stops"]["batch"]
STOPS = widgets.TilingLab().result["stops"]["B_c"]
PLAYER = ["frames", "setting", "B_c"]
CASES = [
    ("FlashPlayer()", slider("B_c", (3, 4), PLAYER)),
    (LARGE, slider("B_c", (9, 8), PLAYER)),
    ("BackwardPlayer()", slider("B_c", (3, 4), PLAYER)),
    ("ComparePlayers()", slider("B_c", (3, 4), PLAYER)),
    ("EightBitsLab()", outliers()),
    ("OverflowLab()", slider("x", (8, 9), ["result", "asked", "x"], ".flash-settings input.flash-overflow-range")),
    ("OverflowLab()", copies()),
    ("TilingLab()", stops()),
    ("MaskLab('line', N_q=96, N_k=96)", lines()),
    ("PagesLab('out of pages', n_pages=32)", rows_of_a_page()),
    ("PipelinePlayer()", None),  # plays what it was sent, and asks Python for nothing
    (MATRICES, blocks()),
    ("RingPlayer()", ranks()),
    ("ServeLab('too few pages')", slots()),
    ("SplitLab(32_768)", parts()),
    ("TripsPlayer()", slider("N", (16, 32), ["frames", "setting", "N"])),
    ("OnlineSoftmaxLab()", rows()),
    ("MergeTree()", orders()),
]

HEAD = "nothing", "beyond", "limit", "worst", "frames/s", "moving"
ECHO = slider("of one", (3, 4), ["answer", "value"], "input")

# Resolves once the next frame has been painted: a message is handled after that, an animation frame before it.
PAINTED = """() => new Promise((done) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => done(performance.now());
    port2.postMessage(null);
}))"""

# ms from each event to the paint of the answer. A pause between two of them keeps the measurements independent.
CHANGE = """async ({ n, steps, path, count, painted, timeout }) => {
    const root = document.querySelectorAll(".flash-widget")[n];
    painted = eval(painted);
    const answered = (loads) => new Promise((done, fail) => {
        const late = setTimeout(() => fail(Error("no answer")), timeout);
        const observer = new MutationObserver(() => {
            if (!(Number(root.dataset.loads) > loads)) return;
            observer.disconnect();
            clearTimeout(late);
            done();
        });
        observer.observe(root, { attributes: true, attributeFilter: ["data-loads"] });
    });
    const shown = () => path.reduce((value, name) => value[name], {
        [path[0]]: root.flashWidget.model.get(path[0]),
    });
    const times = [];
    for (let k = 0; k < count; k++) {
        const [selector, value, event, wanted] = steps[k % 2];
        const control = root.querySelector(selector);
        if (!control || control.matches(":disabled")) throw Error(`nothing to change: ${selector}`);
        const answer = answered(Number(root.dataset.loads));
        const start = performance.now();
        if (value !== null) control.value = value;
        control.dispatchEvent(new Event(event, { bubbles: true }));
        await answer;
        const end = await painted();
        if (shown() !== wanted) throw Error(`asked for ${path.at(-1)} = ${wanted}, shown is ${shown()}`);
        times.push(end - start);
        await new Promise((done) => setTimeout(done, 60));
    }
    return times;
}"""

# Frames per second in which the position changed, at the highest speed, repeatedly; null if nothing plays.
RATE = """async (root, seconds) => {
    const { transport } = root.flashWidget;
    if (!transport) return null;
    const { speed } = transport;
    speed.value = Math.max(...[...speed.options].map(({ value }) => Number(value)));
    transport.seek(0);
    transport.play();
    const start = performance.now();
    let [moved, position, now] = [0, 0, start];
    while (now - start < 1000 * seconds) {
        now = await new Promise(requestAnimationFrame);
        if (transport.position !== position) moved++;
        position = transport.position;
        if (!transport.playing) transport.play();
    }
    transport.pause();
    return (1000 * moved) / (now - start);
}"""

# Frames per second while something moves, playing two frames a second; null if nothing moves.
MOVING = """async (root, seconds) => {
    const { transport } = root.flashWidget;
    if (!transport) return null;
    transport.speed.value = 2;
    transport.seek(0);
    transport.play();
    const frame = () => new Promise(requestAnimationFrame);
    const start = performance.now();
    let [moved, time, now] = [0, 0, start];
    while (now - start < 1000 * seconds) {
        const before = now;
        const moving = root.getAnimations({ subtree: true }).length > 0;
        now = await frame();
        if (!moving) continue;
        moved++;
        time += now - before;
    }
    transport.pause();
    return moved ? (1000 * moved) / time : null;
}"""

# ms from running a cell to the paint of its widget, and the bytes that were sent for it.
START = """async ({ index, painted, timeout }) => {
    painted = eval(painted);
    const { content } = window.jupyterapp.shell.currentWidget;
    content.activeCellIndex = index;
    const cell = content.widgets[index];
    cell.node.scrollIntoView();
    const old = cell.node.querySelector(".flash-widget");
    const drawn = () => {
        const root = cell.node.querySelector(".flash-widget");
        return root && root !== old && root.dataset.frame !== undefined ? root : null;
    };
    const start = performance.now();
    window.jupyterapp.commands.execute("notebook:run-cell");
    while (!drawn()) {
        if (performance.now() - start > timeout) throw Error("no widget came");
        await new Promise(requestAnimationFrame);
    }
    const end = await painted();
    return [end - start, drawn().flashWidget.model.get("frames").buffer.byteLength];
}"""


def heading(browser):
    """Return the lines above the table: when and on which machine this was measured."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("jupyterlab", "anywidget", "numpy"))
    load = ", ".join(f"{x:.2f}" for x in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"
    return [
        f"{datetime.now():%Y-%m-%d %H:%M}, {os.cpu_count()} cores, load average {load}",
        f"Chromium {browser.version}, Python {platform.python_version()}, {packages}",
    ]


class LimitCheck:
    """Checks figures against their limits; `missed` names those that exceed them."""

    def __init__(self):
        self.missed = []

    def __call__(self, label, value, form, most=None, least=None):
        """Return the text of a value, with a mark if it is above `most` or below `least`; "-" for None."""
        if value is None:
            return "-"
        text = form.format(value)
        if (most is not None and value > most) or (least is not None and value < least):
            bound = f"at most {most}" if least is None else f"at least {least}"
            self.missed.append(f"{label}: {text}, the limit is {bound}")
            return f"! {text}"
        return text


def measure_changes(browser, lab, n, control):
    """Return the times of the changes, in ms. No debugger is attached to the page meanwhile."""
    shown(lab, n)
    asked = {"n": n, "steps": control.steps, "path": control.path, "count": WARM_UP + CHANGES}
    asked |= {"painted": PAINTED, "timeout": 20_000}
    try:
        return browser.run(CHANGE, asked, pause=PAUSE, timeout=LONGEST)[WARM_UP:]
    finally:
        watch(lab, browser.page)


def shown(lab, n):
    """Return a widget of the page, scrolled into view."""
    root = lab.page.locator(".flash-widget").nth(n)
    root.scroll_into_view_if_needed()
    return root


def watch(lab, page):
    lab.watch(page)
    page.set_default_timeout(120_000)


def line(*cells):
    return "{:<39} {:<20} {:>9} {:>10} {:>7} {:>9} {:>9} {:>9}".format(*cells).rstrip()


def main(only=()):
    """Measure all widgets, or only those named, and print the results; return the exit code."""
    names = [case.partition("(")[0] for case, _ in CASES]
    if missing := set(widgets.__all__) - set(names):
        print(f"There is no case to measure {', '.join(sorted(missing))}: add one to CASES.")
        return 1
    if unknown := set(only) - set(names):
        print(f"There is no {', '.join(sorted(unknown))}; there are {', '.join(sorted(set(names)))}.")
        return 1
    cases = [one for one, name in zip(CASES, names, strict=True) if name in only or not only]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "notebooks").mkdir()
        try:
            with browsing.driver() as driver, browsing.served(folder) as address:
                with detached_browser.chromium(driver, folder) as browser:
                    return measure(browser, address, folder, cases)
        except browsing.NoBrowser as reason:
            print(reason)
            return 1


def measure(browser, address, folder, cases=CASES):
    """Print the tables, or for some of the cases only that of their changes; return the exit code."""
    print(*heading(browser), "", sep="\n")
    echo = (Path(__file__).parent / "echo_widget.py").read_text(encoding="utf-8")
    cells = [f"from flashlib.widgets import *\n{FORGETFUL}", *(case for case, _ in cases), f"{echo}\nEcho()"]
    with browsing.opened(browser, address, folder, "measure.ipynb", cells) as lab:
        lab.page.evaluate("() => localStorage.setItem('flashlib.guided', 'yes')")  # no callouts
        if errors := lab.run_all():
            print(*errors, sep="\n")
            return 1
        lab.page.set_default_timeout(120_000)
        lab.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        held = LimitCheck()
        wrong = print_cases(browser, lab, held, cases)
        if cases == CASES:
            print_start(lab.page, held)
            print_growth(lab, held)
            print_sizes(lab.page, held)
        outside = [*lab.outside, *filter(browsing.leaves, browser.requests)]
        print(f"\nrequests that left the machine: {len(outside)} (limit 0)")
        complaints = dict.fromkeys(lab.complaints)  # each is reported again whenever playwright attaches
        print(f"errors on the page: {len(complaints)} (limit 0)")
        found = [*wrong, *outside, *complaints, *held.missed]
        print("", *(found or ["Every limit is kept."]), sep="\n")
        return 1 if found else 0


def print_cases(browser, lab, held, cases):
    """Print a line for each case; return what went wrong."""
    print(line("ms beyond those of a widget that draws", f"{CHANGES} changes of", *HEAD))
    print(line("nothing, which is measured before each", *[""] * 5, LIMITS["rate"], LIMITS["motion"]))
    wrong = []
    for n, (case, control) in enumerate(cases):
        label = control.label if control else ""
        try:
            nothing = measure_changes(browser, lab, len(cases), ECHO) if control else []
            times = measure_changes(browser, lab, n, control) if control else []
        except detached_browser.Failed as error:
            wrong.append(f"{case}, {label}: {error}")
            print(line(case, label, "error", *[""] * 5))
            continue
        rate, motion = (shown(lab, n).evaluate(script, PLAYED) for script in (RATE, MOVING))
        most = BEYOND.get(case, BEYOND.get(case.partition("(")[0], OTHERS))
        beyond = median(times) - median(nothing) if times else None
        answered = held(f"{case}, {label}, ms beyond", beyond, "{:.1f}", most=most)
        spent = [f"{median(nothing):.1f}", answered, most, f"{max(times):.1f}"] if times else ["-"] * 4
        played = held(f"{case}, frames/s", rate, "{:.1f}", least=LIMITS["rate"])
        moved = held(f"{case}, frames/s with motion", motion, "{:.1f}", least=LIMITS["motion"])
        print(line(case, label, *spent, played, moved), flush=True)
    return wrong


def print_start(page, held):
    index = 1 + [case for case, _ in CASES].index(LARGE)
    asked = {"index": index, "painted": PAINTED, "timeout": 20_000}
    found = [page.evaluate(START, asked) for _ in range(STARTS)]
    times, sizes = zip(*found, strict=True)
    time = held(f"{LARGE}, first paint", median(times) / 1000, "{:.2f} s", most=LIMITS["start"])
    worst = f"worst {max(times) / 1000:.2f} s of {STARTS} (limit {LIMITS['start']} s)"
    print(f"\n{LARGE}: from running its cell to the first paint median {time}, {worst}")
    print(f"{LARGE}: {sizes[0]} bytes in its buffer")


def print_growth(lab, held):
    """Print how much memory the page gains when a cell is run repeatedly."""
    for _ in range(5):  # at first the browser itself grows: it compiles code that runs often
        lab.run_again(1)
    before = lab.heap()
    for _ in range(RUNS):
        lab.run_again(1)
    growth = (lab.heap() - before) / 1e6
    grown = held(f"{RUNS} runs of {CASES[0][0]}, heap", growth, "{:.2f} MB", most=LIMITS["growth"])
    print(f"{CASES[0][0]}: {RUNS} runs of its cell make the heap grow by {grown} (limit {LIMITS['growth']} MB)")


def print_sizes(page, held):
    """Print how high each widget is on a laptop, and the time of its picture in Python."""
    shown = page.locator(".flash-widget")
    browsing.set_width(shown.first, sizes.LAPTOP)
    label, limit = f"at {sizes.LAPTOP} px", LIMITS["picture"]
    print(f"\n{label:<39} {'height':>10} {'limit':>7} {'picture':>10} (limit {limit} ms)")
    for n, (case, _) in enumerate(CASES):
        name = case.partition("(")[0]
        box = shown.nth(n).bounding_box()
        most = None if name in sizes.HIGHER or case == MATRICES else sizes.HIGH
        height = held(f"{case}, height", box["height"], "{:.0f} px", most=most)
        picture = held(f"{case}, picture", picture_time(case), "{:.0f} ms", most=LIMITS["picture"])
        print(f"{case:<39} {height:>10} {most or '':>7} {picture:>10}")


def picture_time(case):
    """Return the CPU time of a widget's picture, in ms: the median of 5 after a first one."""
    widget, times = eval(case, vars(widgets).copy()), []
    for _ in range(6):
        start = time.process_time()
        widget.figure().png()
        times.append(1000 * (time.process_time() - start))
    return median(times[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
