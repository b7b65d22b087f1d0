"""What a page computes itself, run by node without a browser: the tests in js/, and grades against Python's."""

import base64
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("anywidget")

from flashlib import masks
from flashlib.checks.engine import prediction
from flashlib.checks.engine.answer_types import accepted, written
from flashlib.checks.engine.grade import grade
from flashlib.checks.engine.prediction import questions
from flashlib.types import Step
from flashlib.widgets import (
    BackwardPlayer,
    EightBitsLab,
    FlashPlayer,
    MaskLab,
    OnlineSoftmaxLab,
    OverflowLab,
    PagesLab,
    ProgramsLab,
    RingPlayer,
    SplitLab,
    TilingLab,
    TripsPlayer,
)
from flashlib.widgets.backward_player import frames as backward_frames
from flashlib.widgets.flash_player import frames
from tests.checks.engine import guesses
from tests.required import ROOT, node

FILES = sorted(Path(__file__).parent.joinpath("js").glob("*.test.js"))
CARD = (ROOT / "flashlib/widgets/prediction_card").as_uri()
GRADE = f"""
import {{ grade }} from "{CARD}/grade.js";
import {{ readAll }} from "{CARD}/typed_text.js";
import {{ readFileSync }} from "node:fs";
const graded = ([card, texts]) => {{
  const {{ answers, slips }} = readAll(card.fields, texts);
  return {{ slips: slips.map(({{ sentence }}) => sentence), ...grade(card, answers) }};
}};
console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf-8")).map(graded)));
"""


def inputs(count, N_q, N_k, d, dtype=np.float64):
    """Q, K, V, then other tensors like Q, of sizes that share no factor."""
    rng = np.random.default_rng(1)
    return [rng.normal(size=(N_k if n in (1, 2) else N_q, d)).astype(dtype) for n in range(count)]


def without_rescale(Q, K, V, B_r, B_c):
    """A learner's steps with a bug: l is never rescaled."""
    for i in range(-(-len(Q) // B_r)):
        Q_i = Q[i * B_r : (i + 1) * B_r]
        m, l, O_acc = np.full(len(Q_i), -np.inf), np.zeros(len(Q_i)), np.zeros_like(Q_i)
        for j in range(-(-len(K) // B_c)):
            K_j, V_j = K[j * B_c : (j + 1) * B_c], V[j * B_c : (j + 1) * B_c]
            S_ij = Q_i @ K_j.T / np.sqrt(Q.shape[1])
            m_old, m = m, np.maximum(m, S_ij.max(axis=1))
            P_ij = np.exp(S_ij - m[:, None])
            l = l + P_ij.sum(axis=1)
            O_acc = np.exp(m_old - m)[:, None] * O_acc + P_ij @ V_j
            yield Step(i, j, m, l, O_acc)


FLASH = {
    "fa2": lambda: FlashPlayer(N=7, d=3, B_r=4, B_c=2),
    "fa1, causal, N_q > N_k": lambda: FlashPlayer(*inputs(3, 10, 7, 4), B_r=4, B_c=3, causal=True, order="fa1"),
    "causal, N_q < N_k, float32": lambda: FlashPlayer(*inputs(3, 5, 13, 3, np.float32), B_r=3, B_c=5, causal=True),
    "a window": lambda: FlashPlayer(*inputs(3, 11, 11, 2), B_r=2, B_c=3, mask=masks.Window(2, 1)),
    "one tile": lambda: FlashPlayer(*inputs(3, 3, 5, 1), B_r=3, B_c=5),
    "words": lambda: FlashPlayer.from_sentence(),
    "a learner's": lambda: FlashPlayer.from_steps(without_rescale, N=7, d=3, B_r=4, B_c=2),
}
BACKWARD = {
    "kv": lambda: BackwardPlayer(N=7, d=3, B_r=4, B_c=2),
    "q, causal, N_q > N_k": lambda: BackwardPlayer(*inputs(4, 10, 7, 4), B_r=4, B_c=3, causal=True, wrt="q"),
    "kv, causal, N_q < N_k": lambda: BackwardPlayer(*inputs(4, 5, 13, 3), B_r=3, B_c=5, causal=True),
}
LABS = {  # no size divides another
    "mask": lambda: MaskLab("documents", also="causal", lengths=(5, 9), N_q=10, N_k=17, B_r=4, B_c=3),
    "wide": lambda: TilingLab(N=40, d=24, B_r=16, B_c=48, causal=True),
    "tall": lambda: TilingLab(N=40, d=24, B_r=48, B_c=16, capacity=8),
    "large": lambda: TilingLab(N=5000, d=24, B_r=16, B_c=48, capacity=48, dtype="float32"),
    "prompt": lambda: PagesLab("a shared prompt"),
    "forks": lambda: PagesLab("fork and copy on write", page=8),
    "programs": lambda: ProgramsLab("tile", N=7, BLOCK=4, mask=False, stride_r=7),
    "vector": lambda: ProgramsLab(N=13, BLOCK=8),
    "split": lambda: SplitLab(N_k=3000, parts=7, B=20),
    "eight": lambda: EightBitsLab(N=256),
    "trips": lambda: TripsPlayer(N=21, d=3),
    "one trip": lambda: TripsPlayer(N=1, d=1),
    "ring": lambda: RingPlayer(ranks=3, N=30, mask="none"),
    "high": lambda: OnlineSoftmaxLab((100, 101, 99.5, 103)),
    "low": lambda: OnlineSoftmaxLab((-101, -100, -103)),
    "overflow": lambda: OverflowLab(9.5, offsets=(-3, -1.5, 0), copies=7),
    "shifted": lambda: OverflowLab(-15, offsets=(-2, 3, -9)),
    "around": lambda: OnlineSoftmaxLab((1, -2, 3, 2)),
}


def text(X):
    return base64.b64encode(np.ascontiguousarray(X, "<f8").tobytes()).decode()


def player(widget, names):
    """What is sent to a player's page, and Python's steps."""
    assert widget.problem == ""
    steps = widget._recording.steps
    arrays = [{name: text(X) for name in names if (X := getattr(step, name)) is not None} for step in steps]
    sent = {**widget.frames, "buffer": base64.b64encode(widget.frames["buffer"]).decode()}
    return {"frames": sent, "arrays": arrays}


def in_text(data):
    return {"bytes": base64.b64encode(data).decode()}


def shown(lab):
    """What is sent to a lab's page."""
    assert lab.problem == ""
    return lab.get_state(lab._shows)[lab._shows]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The file that js/sent.js reads: what is sent to the pages of players, with their arrays, and of labs."""
    everything = {
        "flash": {name: player(make(), frames.PACKED) for name, make in FLASH.items()},
        "backward": {name: player(make(), backward_frames.PACKED) for name, make in BACKWARD.items()},
        "labs": {name: shown(make()) for name, make in LABS.items()},
    }
    path = tmp_path_factory.mktemp("sent") / "sent.json"
    path.write_text(json.dumps(everything, allow_nan=False, default=in_text), encoding="utf-8")
    return path


def test_the_page_computes_correctly(recorded):
    """All files in one process: starting node takes as long as most of them."""
    assert len(FILES) > 10
    imports = "".join(f'import "{path.as_uri()}";\n' for path in FILES)
    command = [node(), "--input-type=module", "--eval", imports]
    env = {**os.environ, "SENT_BY_PYTHON": str(recorded)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr


def graded(answers):
    """Return the page's verdicts on answers, a list of (what is sent to a card, {part: text})."""
    command = [node(), "--input-type=module", "--eval", GRADE]
    given = json.dumps(answers)
    done = subprocess.run(command, input=given, capture_output=True, text=True, encoding="utf-8", check=True)
    return json.loads(done.stdout)


def test_entered_answers_are_graded_like_calls():
    """The right answer to every question, and each known wrong one: all can be entered."""
    answers, values = [], []
    for question in questions().values():
        asked = guesses.card(question)
        right = {field["part"]: field["right"] for field in asked["fields"]}
        wrong = [{**right, field["part"]: value} for field in asked["fields"] for value, _ in field["wrong"]]
        values += [right, *wrong]
        answers += [[asked, {part: written(x) for part, x in given.items()}] for given in (right, *wrong)]
    assert len(answers) > 600
    for (asked, _), given, page in zip(answers, values, graded(answers), strict=True):
        page.pop("again")  # where the page leads to
        assert page == {"slips": [], **grade(asked, given)}, given


def test_a_text_is_read_as_its_value_or_the_page_asks():
    cards = {name: guesses.card(question) for name, question in guesses.QUESTIONS.items()}
    pages = graded([[cards[name], {"": text}] for name, text, *_ in guesses.ROWS])
    for (name, text, value, outcome), page in zip(guesses.ROWS, pages, strict=True):
        assert page["outcome"] == outcome, (name, text)
        if outcome == "open":
            assert value in page["slips"][0] and not page["sentence"]
            continue
        field = cards[name]["fields"][0]
        call = grade(cards[name], {"": accepted([*map(tuple, value)] if name == "pairs" else value, field)})
        assert page["slips"] == [] and page["sentence"].partition(" (")[2] == call["sentence"].partition(" (")[2]
        assert page["outcome"] == call["outcome"] and page.get("hint") == call.get("hint")


NUMBERS = [0, 2.4, 2.5, 2.51, 2.6, -2.5, 5, 2.5e9, 2.5 * 1024, 2.6 / 1024**2]


def test_the_page_remarks_on_numbers_like_a_call():
    asked = []
    for right in (2.5, -3.25e-4, 7, 0.0):
        question = prediction.Question("number", lambda right=right: right, "because.", tolerance=0.01, unit="GB")
        asked += [(guesses.card(question), x) for x in NUMBERS]
    pages = graded([[card, {"": repr(x)}] for card, x in asked])
    for (card, x), page in zip(asked, pages, strict=True):
        page.pop("again")
        assert page == {"slips": [], **grade(card, {"": x})}, x
