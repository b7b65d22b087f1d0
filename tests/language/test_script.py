"""A script with its texts translated is the same script."""

import json
import shutil
import subprocess

import pytest

from flashlib.language import script
from flashlib.widgets import modules
from flashlib.widgets.widget import FOLDER

SOURCE = r"""
// "a comment, which stays"
const pattern = /["'`]a row\/[/"]/.test(x) ? 4 / 2 / 1 : "it's a row";
/* `another one` */
const said = (n, of) => `row ${n} of ${of.map((k) => `the ${k + "}"}-th one`).join(", ")}, \`so\``;
element.matches("button, input");
"""
TEXTS = {
    "a comment, which stays": "NO",
    "it's a row": 'eine "Zeile"',
    "row {0} of {1}, `so`": "`so` von {1}: Zeile {0}",
    "the {0}-th one": "das {0}.",
    "button, input": "NO",
}


def run(text):
    if not shutil.which("node"):
        pytest.skip("node is not there")
    head = "const say = (x) => x === 'a' ? 'A' : x, x = '', element = { matches: (s) => s };"
    tail = "console.log(JSON.stringify([pattern, said('a', [1, 2]), element.matches('button, input')]));"
    done = subprocess.run(["node", "-e", f"{head}{text}{tail}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_strings_are_found_and_comments_and_patterns_are_not():
    found = [text.template for text in script.found(SOURCE)]
    assert found == ["it's a row", "row {0} of {1}, `so`"]
    assert [text.values for text in script.found(SOURCE)][1][0] == "n"


def test_values_come_in_the_order_of_the_language_and_are_looked_up():
    assert run(SOURCE) == ["it's a row", "row a of the 1}-th one, the 2}-th one, `so`", "button, input"]
    assert run(script.translated(SOURCE, TEXTS)) == [
        'eine "Zeile"',
        "`so` von das 1}., das 2}.: Zeile A",
        "button, input",
    ]


def test_every_script_of_a_widget_is_read_to_its_end():
    """Nothing changes where no text is known, and where one is, it is written once more as it was."""
    for path in sorted(FOLDER.rglob("*.js")):
        source = modules.plain(path.read_text(encoding="utf-8"))
        assert script.translated(source, {}) == source, path
        assert list(script.found(source)) or "`" not in source, path
