"""Print verdicts of many kinds, as JSON: python -m tests.language.verdicts"""

import json
import os

os.environ["FLASHLIB_PROGRESS"] = "off"

from flashlib import checks  # noqa: E402
from flashlib.checks.engine import mistake_tables, solutions  # noqa: E402


def my_first(a, b):
    return a


def my_raises(a, b):
    raise KeyError(3)


def my_odd(a, b):  # no known mistake: "wrong" is a value of the sentence
    return type(a)(*(0 * x + 7.25 for x in a))


def my_prints(a, b):
    print("printed by the learner")
    return None


def my_stub(a, b):
    raise NotImplementedError


def my_changes(x):
    x += 1
    return x


def verdicts():
    """Yield a name and a verdict of each kind."""
    for answer in (my_first, my_odd, my_raises, my_prints, my_stub, 3):
        yield f"merge {getattr(answer, '__name__', answer)}", checks.merge(answer)
    yield "changed", checks.safe_softmax(my_changes) if hasattr(checks, "safe_softmax") else None
    yield "loop", checks.fa2(my_first)
    yield "predicted", checks.predict("first_overflow", 3)
    yield "a str", checks.predict("first_overflow", fp16="12")
    yield "no set", checks.predict("more_queries", tiles=3, row_without_key=1)
    yield "no tuple", checks.predict("shapes", S=5)
    yield "no choice", checks.predict("lab_sliders", FA1=0)
    yield "shown", checks.predict("first_overflow", show=True)
    yield "no question", checks.predict("first_overflo", 3)


def main():
    found = {name: repr(verdict) for name, verdict in verdicts() if verdict is not None}
    tables = mistake_tables.tables().values()
    sentences = sorted({mistake.sentence for table in tables for mistake in table.values()})
    print(json.dumps({"verdicts": found, "sentences": sentences, "solutions": len(solutions.names())}))


if __name__ == "__main__":
    main()
