"""The types with which a page reads Python's data match the data, with no key too few or too many.

The data that widgets send is written as TypeScript, whose checker compares it with the types in their types.js.
"""

import importlib.util
import json
import math
import re
import subprocess

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("matplotlib")

from flashlib import checks, masks, recorded_head, tiled, widgets
from flashlib.pipeline import Barrier, Program
from flashlib.pipeline import Wait as WaitFor
from flashlib.ring import Send, Wait
from flashlib.types import Step
from flashlib.widgets.compiler_lab import CompilerLab
from flashlib.widgets.widget import FOLDER, Widget
from tests.required import ROOT, tsc
from tests.widgets.test_files import CLASSES

TYPES = {"ComparePlayers": "CompareTraits"}  # for the others: Traits
MOST = 200  # items of a list: more of the same would show nothing new


def wrong_steps(Q, K, V, *, B_r, B_c):
    for step in tiled.steps(Q, K, V, B_r=B_r, B_c=B_c):
        if step.j != 1:
            yield Step(step.i, step.j, step.m, step.l + step.j, step.O_acc)


def stuck():
    x = Barrier("x")
    return Program({"one": lambda: iter([WaitFor(x, 0)])}, (x,), ())


def all_send_first(me):
    yield Send(me.next, me.own)
    yield Wait()


def pages(**changes):
    solved = {}
    exec(checks.engine.solutions.text("pages"), solved)
    return type("MyPages", (solved["MyPages"],), changes)


FORK = "fork and copy on write"
SENTENCE = dict(recorded_head.load()._asdict(), panels="less")
SHOWN = {  # besides each class without arguments: cases with other keys, or null in place of a number
    "BackwardPlayer": [dict(wrt="q", causal=True, opens_at=2)],
    "CompilerLab": [dict(kernel="hopper_forward", d=64), dict(B_r=128, B_c=128, num_warps=4, num_stages=4)],
    "EightBitsLab": [dict(pv="fp16", record=[("e4m3, two levels", 871.5)]), dict(sums="exact")],
    "FlashPlayer": [
        dict(order="fa1", opens_at=2),
        dict(mask=masks.window(2, 1)),
        dict(my_steps=wrong_steps),
        SENTENCE,
    ],
    "MaskLab": [dict(mask="documents"), dict(mask="blocks"), dict(mask=masks.alibi(0.5))],
    "MergeTree": [dict(order="balanced")],
    "OverflowLab": [dict(x=-18, copies=2), dict(x=700, dtype="float64")],
    "PagesLab": [dict(scenario=FORK, allocator=pages(fork=lambda self, sequence: sequence)), dict(scenario=FORK)],
    "PipelinePlayer": [dict(program=stuck())],
    "ProgramsLab": [dict(kernel="tile", mask=False), dict(N=0)],
    "RingPlayer": [dict(program=all_send_first), dict(program=all_send_first, way="all-gather", token=0)],
    "SplitLab": [dict(N_k=1000, parts=2, record=[(1, 30.5), (3, 20)])],
    "TilingLab": [dict(capacity=1), dict(panels="less")],
}


def shown(cls):
    """Return widgets of a class."""
    if cls.__name__ == "PredictionCard":
        return [checks.predict(name) for name in checks.engine.prediction.questions()]
    if cls is CompilerLab and importlib.util.find_spec("triton") is None:
        return []
    made = [cls(**arguments) for arguments in [{}, *SHOWN.get(cls.__name__, ())]]
    for one in made:
        assert not one.problem
        if cls is CompilerLab:
            one.wait()
    return made


def sent(one):
    """Return what is sent to a widget's page, {name: value}."""
    names = {name for cls in type(one).__mro__ if issubclass(cls, Widget) for name in vars(cls)} - {"script"}
    return one.get_state([name for name in one.keys if name in names and not name.startswith("_")])


def typescript(x):
    """Return a value as an expression of TypeScript."""
    if isinstance(x, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {typescript(value)}" for key, value in x.items()) + "}"
    if isinstance(x, list | tuple):
        return "[" + ", ".join(map(typescript, x[:MOST])) + "]"
    if isinstance(x, bytes | bytearray | memoryview):
        return "new DataView(new ArrayBuffer(0))"
    if isinstance(x, float) and not math.isfinite(x):
        return "NaN"
    return json.dumps(x)


def keys(x):
    """Return all keys in a value, at any depth."""
    if isinstance(x, dict):
        return set(x).union(*map(keys, x.values()))
    return set().union(*map(keys, x)) if isinstance(x, list | tuple) else set()


def test_the_types_match_the_data_and_the_javascript_keeps_to_them(tmp_path):
    """All classes in one run, whose errors begin with the name of a class or of a JavaScript file."""
    command, never_sent = tsc(), {}
    for cls in CLASSES:
        types = FOLDER / cls.__module__.split(".")[-2] / "types.js"
        all_sent = [sent(one) for one in shown(cls)]
        text = f'import type {{ {TYPES.get(cls.__name__, "Traits")} as Traits }} from "{types.as_posix()}";\n'
        text += "".join(f"export const sent{k}: Traits = {typescript(one)};\n" for k, one in enumerate(all_sent))
        (tmp_path / f"{cls.__name__}.ts").write_text(text, encoding="utf-8")
        optional = set(re.findall(r"@property \{.*\} \[(\w+)\]", types.read_text(encoding="utf-8")))
        never_sent[cls.__name__] = optional - keys(all_sent) if all_sent else set()
    files = [*(f"{cls.__name__}.ts" for cls in CLASSES), (FOLDER / "shared" / "page.d.ts").as_posix()]
    config = {"extends": (ROOT / "tsconfig.json").as_posix(), "files": files}
    (tmp_path / "tsconfig.json").write_text(json.dumps(config), encoding="utf-8")
    done = subprocess.run([*command, "-p", tmp_path], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert not any(never_sent.values()), never_sent


def test_every_widget_is_here():
    assert {cls.__name__ for cls in CLASSES} >= set(widgets.__all__) | SHOWN.keys()
