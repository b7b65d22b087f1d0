"""Write the texts of the course into the file of a language: python -m tools.language de

The file is {English: translated}, in the order of the code. A new text has "", which is shown in English; existing
translations are kept. Texts that are no longer in the code are removed, and printed if they were translated.
`--words` adds single words: most are names in code, so translate only those that a reader sees.
"""

import argparse
import ast
import functools
import json
from collections.abc import Iterator
from pathlib import Path

from flashlib.checks.engine import mistake_tables, prediction
from flashlib.checks.engine.verdict import LABEL, SENTENCE, Outcome
from flashlib.language import loading, python, reading, script, texts

PACKAGE = Path(texts.FOLDER).parent


@functools.cache
def strings() -> tuple[str, ...]:
    """Return each string of the code that may be shown, once, with {0} for a value."""
    return tuple(dict.fromkeys(_strings()))


def _strings():
    for room in loading.ROOMS:
        place = PACKAGE.joinpath(*room.split("."))
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]:
            if path.stem not in loading.WITHOUT:
                tree = ast.parse(path.read_text(encoding="utf-8"))
                found = [template for template, _ in python.found(tree)]
                yield from found
                if path.stem == "questions":  # a card shows the names of its parts, without underscores
                    yield from (name.replace("_", " ") for name in found if name.isidentifier())
    for path in sorted((PACKAGE / "widgets").rglob("*.js")):
        yield from _of_script(path.read_text(encoding="utf-8"))


def _of_script(source):
    for text in script.found(source):
        yield text.template
        for value in text.values:
            yield from _of_script(value)


def sentences() -> Iterator[str]:
    """Yield the outcomes of an answer, the questions of cards, and the sentences in the tables of mistakes."""
    yield from (LABEL, SENTENCE, *map(str, Outcome))
    yield from prediction.card_texts().values()
    for table in mistake_tables.tables().values():
        yield from (mistake.sentence for mistake in table.values())


def listed(words: bool = False) -> list[str]:
    """Return all texts, each once; words: single words too."""
    found = dict.fromkeys([*sentences(), *filter(reading.is_text, strings())])
    return [*found, *filter(reading.is_word, strings())] if words else [*found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("language", help="a language, such as de, or the path of a .json file")
    parser.add_argument("--words", action="store_true")
    args = parser.parse_args()
    if texts.chosen():
        parser.error(f"unset {texts.VARIABLE}: this needs the texts in English")
    name = args.language
    path = Path(name) if name.endswith(".json") else texts.FOLDER / f"{name}.json"
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    words = args.words or any(map(reading.is_word, old))
    new = {english: old.get(english, "") for english in listed(words)}
    path.write_text(json.dumps(new, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    for english in old.keys() - new.keys():
        if old[english]:
            print(f"gone: {english!r}: {old[english]!r}")
    print(f"{path}: {len(new)} texts, {sum(map(bool, new.values()))} translated")


if __name__ == "__main__":
    main()
