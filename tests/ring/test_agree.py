"""Ranks with different arguments raise one sentence about it, the same on every rank."""

import functools
from datetime import timedelta
from unittest import mock

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("cloudpickle")
from flashlib import masks  # noqa: E402
from flashlib.ring import agree, processes  # noqa: E402


def arguments(**values):
    return agree.RankArguments(
        "f", [(name, agree._words(value), agree._digest(value)) for name, value in values.items()]
    )


def differ(*given):
    return agree.disagreement(dict(enumerate(arguments(**values) for values in given)))


def test_the_sentence_names_the_ranks_of_each_value():
    assert differ({"N": 96}, {"N": 64}, {"N": 96}) == (
        "the ranks of f disagree: N is 96 on ranks 0, 2 and 64 on rank 1; give every rank the same"
    )
    text = differ({"dtype": torch.float32, "N": 3}, {"dtype": torch.bfloat16, "N": 3})
    assert "dtype is float32 on rank 0 and bfloat16 on rank 1" in text and "N is" not in text
    assert "mask is causal() on rank 0 and not given on rank 1" in differ({"mask": masks.causal()}, {})


def test_ranks_that_call_different_functions():
    text = agree.disagreement({0: agree.RankArguments("attention", []), 1: agree.RankArguments("backward", [])})
    assert text.startswith("the ranks call different functions: attention on rank 0 and backward on rank 1; ")


def test_masks_with_equal_words_differ_by_their_digest():
    text = differ({"mask": masks.documents([0, 0, 1])}, {"mask": masks.documents([0, 1, 1])})
    assert text.count("documents(<2 documents of 3 tokens>) with the digest ") == 2


def function(offset=0, by=2):
    return masks.from_function(lambda r, c: c <= r + offset * by)


def written(text, default=1, **names):
    return eval(f"lambda r, c, n={default}: {text}", {"np": np, **names})


ALIKE = {
    "none": lambda: None,
    "numbers": lambda: (3, 2.5, True, "zigzag"),
    "a shape": lambda: torch.Size([2, 3]),
    "a dtype": lambda: torch.bfloat16,
    "a tensor": lambda: torch.arange(6.0).reshape(2, 3).T,
    "whole numbers beyond fp32": lambda: torch.tensor([2**24 + 1]),
    "causal": masks.causal,
    "a window": lambda: masks.window(3, 0) & masks.prefix(2),
    "documents": lambda: masks.documents([0, 1, 1]) | masks.window(1, 1),
    "blocks": lambda: masks.blocks(np.eye(2, dtype=bool), 4, 4),
    "slopes": lambda: masks.alibi([0.5, 0.25]) & masks.causal(),
    "a function": function,
    "a function with a number": lambda: function(1),
    "a function with another number": lambda: function(1, 3),
    "a function with a constant": lambda: written("c <= r + 1"),
    "a function with another constant": lambda: written("c <= r + 2"),
    "a function that calls one": lambda: written("np.minimum(r, c) < 1"),
    "a function that calls another": lambda: written("np.maximum(r, c) < 1"),
    "a function with a global": lambda: written("c < N", N=1),
    "a function with another global": lambda: written("c < N", N=2),
    "a function with another default": lambda: written("c <= r + 1", default=2),
    "another dtype of as many bytes": lambda: torch.tensor([2**24]).view(torch.float64),
    "another shape": lambda: torch.arange(6.0).reshape(2, 3).T.reshape(2, 3),
    "another table": lambda: masks.blocks(~np.eye(2, dtype=bool), 4, 4),
    "other documents": lambda: masks.documents([0, 0, 1]) | masks.window(1, 1),
    "a neighbour beyond fp32": lambda: torch.tensor([2**24]),
    "a list": lambda: ((1, 2), 3),
    "nested otherwise": lambda: (1, (2, 3)),
}


def test_equal_values_have_one_digest_and_different_ones_have_different_digests():
    digests = {name: agree._digest(make()) for name, make in ALIKE.items()}
    assert {name: agree._digest(make()) for name, make in ALIKE.items()} == digests
    assert len({*digests.values()}) == len(digests)


def test_long_words_are_shortened_until_they_fit():
    many = agree.RankArguments("f" * 500, [(f"value {n}", "x" * 300, "0" * 8) for n in range(60)])
    row = agree._to_bytes(many)
    assert row.size == agree.WORDS and len(agree._from_bytes(row.tobytes()).values) == 60
    assert agree._from_bytes(agree._to_bytes(many._replace(values=many.values * 9)).tobytes()).call == "fffff"


def error_of(call="attention", **values):
    """Return the error of `check` on this rank, or ""."""
    try:
        agree.check(call, **values)
    except ValueError as error:
        return str(error)
    return ""


def compared():
    """As a rank, return the errors of calls of `check`."""
    rank = torch.distributed.get_rank()
    ids = masks.documents([0, 1])
    return [
        error_of(N=96, mask=ids, dtype=torch.float32),
        error_of(N=96 - rank % 2, mask=ids, dtype=torch.float32),
        error_of("attention" if rank else "backward", N=96),
        error_of(mask=masks.documents([0, int(rank > 0), 1])),
        error_of(N=96, mask=ids, dtype=torch.float32),
    ]


@functools.cache
def ranks():
    """Return the results of three ranks: one run serves three tests."""
    return [*zip(*processes.run(everything, ranks=3, seconds=100), strict=True)]


def everything():
    return compared(), in_a_part(), many_rounds()


def test_all_ranks_raise_the_same_or_none_raises():
    first, *others = ranks()[0]
    assert others == [first] * 2
    assert [bool(text) for text in first] == [False, True, True, True, False]
    assert "N is 96 on ranks 0, 2 and 95 on rank 1" in first[1]
    assert "backward on rank 0" in first[2] and "with the digest" in first[3]


def in_a_part():
    """As one of three ranks, two of which form a group, compare in that group."""
    rank, pair = torch.distributed.get_rank(), torch.distributed.new_group([1, 2])
    return error_of(group=pair, N=rank) if rank else ""


def test_a_group_of_some_ranks_compares_alone_and_the_error_has_global_ranks():
    text = "the ranks of attention disagree: N is 1 on rank 1 and 2 on rank 2; give every rank the same"
    assert ranks()[1] == ("", text, text)


def only_new(backend):
    """As a rank on a backend, return the error of each call, and how many exchanges there were after it."""
    rank, done = torch.distributed.get_rank(), []
    pair = torch.distributed.new_group([0, 1])
    agree._comparisons.clear()
    ways = [
        mock.patch.object(agree, way, counted(getattr(agree, way), done)) for way in ("_by_tensors", "_by_store")
    ]
    with mock.patch("torch.distributed.get_backend_config", lambda group: backend), ways[0], ways[1]:
        calls = [{"N": 5}, {"N": 5}, {"N": 6 + rank}, {"N": 6 + rank}, {"N": 5}]
        found = [
            (error_of(**values, group=group, always=False), len(done))
            for values in calls
            for group in (None, pair)
        ]
    return found, done


def counted(function, done):
    """Return the function, recording its calls."""

    def noting(*arguments):
        done.append(function.__name__)
        return function(*arguments)

    return noting


def on_both():
    return only_new("cpu:gloo"), only_new("cuda:nccl")


def test_equal_values_are_not_compared_again_and_different_ones_are():
    one, other = processes.run(on_both, ranks=2, seconds=100)
    assert one == other
    for (found, done), way in zip(one, ("_by_tensors", "_by_store"), strict=True):
        assert {*done} == {way}
        assert [bool(text) for text, _ in found] == [False] * 4 + [True] * 4 + [False] * 2
        assert [count for _, count in found] == [1, 2, 2, 2, 3, 4, 5, 6, 6, 6]
        assert "N is 6 on rank 0 and 7 on rank 1" in found[4][0]


def many_rounds():
    """Return how many keys the store has after a few rounds and after many, and numbers compared last."""
    group, counts, store = torch.distributed.group.WORLD, [], torch.distributed.group.WORLD.get_group_store()
    with mock.patch("torch.distributed.get_backend_config", lambda group: "cuda:nccl"):
        for n in range(30):
            assert error_of(N=n) == ""
            if n in (9, 29):
                torch.distributed.barrier()  # all ranks have ended this round
                counts.append(store.num_keys())
                torch.distributed.barrier()
        return counts, agree.numbers_of_all(group, torch.distributed.get_rank())


def test_comparisons_do_not_fill_the_store():
    for (few, many), numbers in ranks()[2]:
        assert few == many and numbers == [(0,), (1,), (2,)]


def alone():
    """As rank 0, compare while rank 1 does not."""
    torch.distributed.group.WORLD.get_group_store().set_timeout(timedelta(seconds=1))
    with mock.patch("torch.distributed.get_backend_config", lambda group: "cuda:nccl"):
        return None if torch.distributed.get_rank() else error_of(N=5)


def test_a_rank_that_compares_alone_raises():
    with pytest.raises(
        processes.RankError, match="rank 0 calls attention with N = 5, which is new to it, and not all"
    ):
        processes.run(alone, ranks=2, seconds=100)
