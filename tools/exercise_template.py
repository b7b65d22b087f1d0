"""The exercise that `tools.new_exercise` writes: a small one that works, called NAME, with a TODO in each part.

It asks for the largest score of a row less the smallest. Its four known mistakes and the answer WRONG are the five
wrong answers that a test requires.
"""

SOLUTION = """\
def my_NAME(x):
    # TODO: the solution
    return x.max() - x.min()
"""
MISTAKES = """
# TODO: your mistakes, and below each the edits of the solution that make it
[NAME]
no_smallest: the smallest score is not subtracted: return the largest score less the smallest
    x.max() - x.min() -> x.max()
no_largest: the largest score is missing: return the largest score less the smallest
    x.max() - x.min() -> -x.min()
exchanged: the largest score is subtracted from the smallest: exchange them
    x.max() - x.min() -> x.min() - x.max()
added: the two scores are added: subtract the smallest from the largest
    x.max() - x.min() -> x.max() + x.min()
"""
CHECK = '''\
"""The exercise NAME. TODO: say in a line what it asks."""

from collections.abc import Callable

import numpy as np

from flashlib.checks.engine import Case, Known, Verdict, examine, exercise, random_cases


@exercise(title="TODO", minutes=5, difficulty="easy")
def NAME(answer: Callable, known: Known) -> Verdict:
    cases = [
        _case("a single score", [2.0]),
        _case("two scores", [1.0, 3.0]),
        _case("scores below 0", [-1.0, -4.0, -2.0]),
    ]
    return examine(answer, cases + random_cases.cases(_any_case), known)


def _case(words, x):
    """Return the Case of a row of scores; its words complete "wrong for ..."."""
    return Case(words, (np.array(x),), np.ptp(x))


def _any_case(rng):
    x = rng.normal(size=rng.integers(3, 40))
    return _case(f"{len(x)} scores", x)
'''
OF_KERNELS = {  # in a chapter that needs Triton, a check says so if its known mistakes are edits of the solution
    "random_cases\n": "random_cases, solutions\n",
    '"easy")': '"easy", program=solutions.program("NAME"))',
}
RIGHT = """

# NAME: TODO sorted
def my_NAME(x):
    ordered = sorted(x)
    return ordered[-1] - ordered[0]
"""
WRONG = """

# NAME, no_smallest: TODO a loop
def my_NAME(x):
    largest = x[0]
    for score in x:
        largest = max(largest, score)
    return largest
"""
KINDS = "rows", "zero", "bound", "sizes", "nice", "nan", "small", "seed", "text"  # as in tests/checks/test_gaps.py
GAPS = "".join(f"{kind}: never: TODO give a reason, or ids of wrong answers\n" for kind in KINDS)

TEXT = f"""### Exercise: TODO

*5 minutes · easy*

TODO: the task. Write `my_NAME(x)`, which returns the largest score of a row `x` less the smallest.

<details><summary>Hint</summary>

TODO: a hint.

</details>
<details><summary>Solution</summary>

```python
{SOLUTION}```

</details>"""
STUB = '''def my_NAME(x):
    """TODO: Return the largest score less the smallest."""
    raise NotImplementedError'''
CALL = "checks.NAME(my_NAME)"
