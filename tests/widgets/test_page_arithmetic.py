"""What a page computes itself, run by node without a browser: the tests in js/, and its grades beside Python's."""

import json
import math
import subprocess
from pathlib import Path

import pytest

from flashlib.checks.engine import prediction
from flashlib.checks.engine.prediction import questions
from tests.required import ROOT, node

FILES = sorted(Path(__file__).parent.joinpath("js").glob("*.test.js"))
GRADE = f"""
import {{ grade }} from {json.dumps((ROOT / "flashlib/widgets/prediction_card/grade.js").as_uri())};
import {{ readFileSync }} from "node:fs";
const answers = JSON.parse(readFileSync(0, "utf-8"));
console.log(JSON.stringify(answers.map(([card, given]) => grade(card, given))));
"""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_page_computes_right(path):
    done = subprocess.run([node(), "--test", path], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr


def graded(answers):
    """Return what the page says of answers, a list of (what a card gets, {part: text})."""
    command = [node(), "--input-type=module", "--eval", GRADE]
    given = json.dumps(answers)
    done = subprocess.run(command, input=given, capture_output=True, text=True, encoding="utf-8", check=True)
    return json.loads(done.stdout)


def sent(question):
    """Return what a card gets of a question."""
    fields = [prediction._field(question, *part) for part in prediction._expected(question).items()]
    return {"name": question.name, "fields": fields, "reason": question.reason}


def test_the_page_grades_as_a_call_does():
    """The right answer to every question, and each wrong one that is known."""
    answers, verdicts = [], []
    for question in questions().values():
        expected, asked = prediction._expected(question), sent(question)
        right = {field["part"]: field["right"] for field in asked["fields"]}
        answers.append([asked, right])
        verdicts.append(("right", question.reason))
        for field in asked["fields"]:
            for text, why in field["wrong"]:
                values = [v for v in question.wrong if prediction._typed(v[1] if _of_part(v) else v) == text]
                if any(prediction._equal(v, expected[field["part"]], question.tolerance) for v in values):
                    continue
                answers.append([asked, right | {field["part"]: text}])
                verdicts.append(("wrong", why))
    assert len(answers) > 250
    for (asked, given), (said, why), found in zip(answers, verdicts, graded(answers), strict=True):
        assert found["outcome"] == said and why in found["sentence"], (asked["name"], given, found)
        assert said == "right" or found["reason"] == asked["reason"]


def _of_part(value):
    return isinstance(value, tuple) and isinstance(value[0], str)


NUMBERS = [0, 2.4, 2.5, 2.51, 2.6, -2.5, 5, 2.5e9, 2.5 * 1024, 2.6 / 1024**2, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("right", [2.5, -3.25e-4, 7, 0.0, math.inf, math.nan], ids=str)
def test_the_page_says_of_a_number_what_a_call_says(right):
    question = prediction.Question("number", lambda: right, "because.", tolerance=0.01)
    found = graded([[sent(question), {"": repr(x)}] for x in NUMBERS])
    for x, verdict in zip(NUMBERS, found, strict=True):
        problem = prediction._grade(question, "", x, right)
        assert verdict["outcome"] == ("wrong" if problem else "right"), (x, verdict)
        assert problem in verdict["sentence"]
