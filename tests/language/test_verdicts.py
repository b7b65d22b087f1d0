"""In an invented language no text of a verdict stays English."""

import json

import pytest

pytest.importorskip("cloudpickle")

from tests.language import marked

pytestmark = pytest.mark.process


def test_no_text_of_a_verdict_escapes(tmp_path):
    made = json.loads(marked.run(marked.write(tmp_path), "tests.language.verdicts").splitlines()[-1])
    assert len(made["sentences"]) > 2000 and len(made["verdicts"]) > 10
    assert [one for one in made["sentences"] if marked.escaped(one)] == []
    assert "⟦wrong⟧" in made["verdicts"]["merge my_odd"].partition("\n")[0].partition(" ")[2]
    for name, said in made["verdicts"].items():
        assert marked.MARKED.search(said), name
        for line in said.splitlines():
            assert marked.escaped(line.replace("printed by the learner", "")) == [], (name, line)
