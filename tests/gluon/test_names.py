"""Allocations are named as in the kernel's own lines, whatever their form."""

import ast

import pytest

from flashlib.gluon.names import Names


def allocated(names):
    return names.next()


def two(names):
    slots, full = allocated(names), allocated(names)
    return slots, full


def targets(names):
    slots, (full, empty) = allocated(names), (allocated(names), allocated(names))
    return slots, full, empty


def whole(names):
    k = allocated(names), allocated(names)
    return k


def over_lines(names):
    k = (
        allocated(names),
        allocated(names),
    )
    return k


def one_by_one(names):
    return [*two(names), *two(names)]


def of_a_helper(names):
    k = two(names)
    q, r = two(names)
    return [*k, q, r]


def no_assignment(names):
    return allocated(names), allocated(names)


def takes_apart(k):
    k_slots, k_full = k
    return k_slots, k_full


@pytest.mark.parametrize("function, readers, wanted", [
    (two, [], ["slots", "full"]),
    (targets, [], ["slots", "full", "empty"]),
    (whole, [], ["k", "k#1"]),
    (whole, [takes_apart], ["k_slots", "k_full"]),
    (over_lines, [takes_apart], ["k_slots", "k_full"]),
    (one_by_one, [], ["slots", "full", "slots#1", "full#1"]),
    (of_a_helper, [takes_apart], ["k_slots", "k_full", "q", "r"]),
    (no_assignment, [], ["shared", "shared#1"]),
])  # fmt: skip
def test_a_name_comes_from_the_line(function, readers, wanted):
    names = Names(function.__code__)
    names.learn(readers)
    assert list(function(names)) == wanted


def test_a_kernel_without_source_gets_names_too():
    world: dict = {"allocated": allocated}
    exec(
        compile(ast.parse("def kernel(names):\n    k = allocated(names)\n    return k"), "nowhere", "exec"), world
    )
    assert world["kernel"](Names(world["kernel"].__code__)).startswith("shared")
