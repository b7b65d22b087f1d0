"""A kernel's source for one case computes what the kernel computes in that case, and shows nothing else."""

import ast
import re

import pytest

pytest.importorskip("triton")
from flashlib.kernels import backward_passes, forward  # noqa: E402
from flashlib.kernels.compiler import specialised  # noqa: E402
from flashlib.kernels.launch import load_store  # noqa: E402

KERNELS = (
    backward_passes._stream_rows,
    backward_passes._stream_keys,
    load_store.load,
    load_store.load_k,
    forward._stream,
)
PLAIN = {"MASK.variant": None, "MASK.scored": False, "MASK.drops": False, "DESCRIPTORS": False}


def twice(x, LATE):
    return 2 * x if LATE else x + x


def many(x, y, extra, LATE, MODE, unused=None):
    """Do something in each case."""
    total = 0
    for at in range(0, x, 2 if LATE else 1):
        start = at
        # a comment on the loop
        if MODE is None:
            total += start  # what is added
        elif not LATE:
            # below a comment
            total += extra[start % 3]
        else:
            total -= 1
        if LATE and MODE is not None:
            total *= 3
        if LATE or x > 4:
            total += twice(y, LATE)
    return total


def run(text, *arguments):
    """Return the result of a function of this source, which comes with a `twice` for the same case."""
    names = {}
    exec(text, names)
    return names["many"](*arguments)


@pytest.mark.parametrize("late, mode", [(True, None), (True, "all"), (False, None), (False, "all")])
def test_it_computes_the_same(late, mode):
    known = {"LATE": late, "MODE": mode}
    text = specialised.source(twice, known) + "\n\n" + specialised.source(many, known)
    for x, y in ((0, 1), (3, 2), (7, -4)):
        kept = (x, y, [5, 6, 7]) if mode and not late else (x, y)
        assert run(text, *kept) == many(x, y, [5, 6, 7], late, mode)
    assert not re.search(r"LATE|MODE|unused|\bat\b|Do something", specialised.source(many, known))
    assert "for start in range(0, x, " in text and "# a comment on the loop" in text
    assert ("# below a comment" in text) == bool(mode and not late)


def test_unknown_expressions_stay():
    text = specialised.source(many, {"LATE": True})
    assert "MODE is None" in text and "elif" not in text and "LATE" not in text
    assert "# what is added" in text and "# below a comment" not in text
    assert specialised.source(twice, {}) == "def twice(x, LATE):\n    return 2 * x if LATE else x + x"


def test_a_long_header_breaks_between_parameters():
    names = [f"parameter_{n}: int" for n in range(12)]
    namespace = f"def wide({', '.join(names)}, KNOWN: int):\n    return {' + '.join(n[:-5] for n in names)}\n"
    tree = ast.parse(namespace).body[0]
    text = specialised._header(namespace, tree, tree, {"KNOWN": 1})
    assert max(map(len, text.splitlines()[:-1])) <= 115
    header = text.partition("):")[0].splitlines()[1:]
    assert [name.strip() for line in header for name in line.split(",") if name.strip()] == names


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.fn.__name__)
def test_the_plain_source_of_a_kernel_does_not_mention_variants(kernel):
    text = specialised.source(kernel, PLAIN)
    assert not re.search(r"variant|scored|drops|device_side|dropout|mask_args|counted|DESCRIPTORS", text)
    plain, whole = (ast.parse(one).body[0] for one in (text, specialised.source(kernel, {})))
    products = [
        {ast.unparse(x) for x in ast.walk(one) if "tl.dot" in ast.unparse(x)[:7]} for one in (plain, whole)
    ]
    assert products[0] <= products[1]
    assert max(map(len, text.splitlines())) <= 115
