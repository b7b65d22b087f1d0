"""Operations on an allocator of pages: right ones are accepted in any order, failures shown with the fewest."""

import pytest

pytest.importorskip("cloudpickle")
import numpy as np  # noqa: E402

from flashlib.cache.pages import Pages  # noqa: E402
from flashlib.chapters import named  # noqa: E402
from flashlib.checks.chapters.pages import exercises  # noqa: E402
from flashlib.checks.chapters.pages.operations import cause, play, text  # noqa: E402
from flashlib.checks.engine import (
    Finding,  # noqa: E402
    solutions,  # noqa: E402
)

if named("pages").obstacles():
    pytest.skip("the solutions of the chapter import Triton", allow_module_level=True)
RIGHT = solutions.program("pages")
WRONG = {
    "freed_while_owned": "if self.owners[page] == 0: -> if True:",
    "free_lost": "self.unused.append(page) -> pass",
    "left_while_owned": "copied = old, new -> copied = old, new\\n            self.unused.append(old)",
    "copy_lost": "self.owners[old] -= 1\\n -> \\n",
}


class Ours(Pages):
    """The allocator of the course with the interface of the exercise."""

    def start(self):
        return super().start()[0]

    def append(self, sequence, n):
        self.copied = None
        return super().append(sequence, n), self.copied

    def _copy(self, page, to):
        self.copied = page, to

    def table(self, sequence):
        return super().table([sequence])[0]


def scripts(n):
    return [exercises._any_script(np.random.default_rng(seed)).arguments for seed in range(n)]


def found(make, n_pages, page, operations):
    """Return the id of the Finding, or ""."""
    try:
        play(make, n_pages, page, operations)
    except Finding as finding:
        return cause(finding).id
    return ""


def test_the_allocator_of_the_course_is_right():
    for n_pages, page, operations in scripts(100):
        if page & (page - 1) == 0:  # it accepts no other
            play(Ours, n_pages, page, operations)


def test_right_answers_are_right_in_any_order():
    for script in scripts(200):
        play(RIGHT.function, *script)


@pytest.mark.parametrize("id", WRONG)
def test_a_failure_is_shown_by_operations_of_which_none_can_be_left_out(id):
    answer = RIGHT.edited(WRONG[id]).function
    failed = 0
    for n_pages, page, operations in scripts(12):
        result = exercises._played(answer, n_pages, page, operations)
        if result is None:
            continue
        failed += 1
        kind = exercises._kind(result)
        fewest = exercises._fewest(answer, n_pages, page, operations, kind)
        assert exercises._kind(exercises._played(answer, n_pages, page, fewest)) == kind
        for at in range(len(fewest)):
            fewer = exercises._played(answer, n_pages, page, fewest[:at] + fewest[at + 1 :])
            assert fewer is None or exercises._kind(fewer) != kind, text(fewest)
    assert failed > 2


def test_what_a_failed_append_changes_is_its_fault_whatever_fails_after_it():
    grows = "self.lengths[sequence] = N + n"
    forgets = RIGHT.edited(f"copies = n > 0 and -> {grows}\\n        copies = n > 0 and").function
    operations = [("start", "a"), ("append", "a", 3), ("append", "a", 9), ("append", "a", 1)]
    assert found(forgets, 2, 4, operations) == "changed_on_error"
    assert found(RIGHT.function, 2, 4, operations) == ""


@pytest.mark.parametrize(
    ("copied", "given"),
    [("[]", "an empty list"), ("()", "an empty tuple"), ("(0, 1, 2)", "a tuple of 3"), ("0", "the number 0")],
)
def test_a_result_that_is_not_a_pair_of_pages_is_reported(copied, given):
    answer = RIGHT.edited(f"copied = None -> copied = {copied}").function
    with pytest.raises(Finding) as found:
        play(answer, 4, 4, [("start", "a"), ("append", "a", 1)])
    assert (found.value.id, found.value.fields["given"]) == ("copied_kind", given)
