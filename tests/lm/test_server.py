"""Serving: what a request writes does not depend on the others, and no request and no page is ever lost."""

import contextlib
import math
from collections import Counter

import numpy as np
import pytest
import torch

from flashlib.lm.cached_attention import gathered
from flashlib.lm.server import QueueFull, Request, Server, play
from tests.lm.small import CONFIG, one_thread, small, some, way  # noqa: F401, a fixture for all tests here
from tests.tiers import amounts

# In float64 the logits of a request differ by 1e-13, whatever runs beside it: the text is the same for certain.
MODEL = small(dtype=torch.float64)


def trace(seed=0, n=14, most=16, arrives=30):
    """Return requests of random lengths; a third of the prompts begin like another one."""
    rng = np.random.default_rng(seed)
    beginnings = [some(9, seed=i) for i in range(2)]
    requests = []
    for i in range(n):
        prompt = rng.integers(CONFIG.vocab, size=rng.integers(1, most)).tolist()
        if i % 3 == 0:
            prompt = beginnings[i % 2] + prompt[: most - 9]
        new, temperature = int(rng.integers(1, most)), float(rng.choice([0, 0.5, 1]))
        requests.append(Request(prompt, new, int(rng.integers(1000)), temperature, int(rng.integers(arrives))))
    return requests


def alone(request, model=MODEL):
    """Return what follows a prompt without a server and without a cache."""
    prompt, n, seed, temperature, _ = request
    return list(model.generate(prompt, n, seed=seed, temperature=temperature, over=None))


def served(requests, *sizes, model=MODEL, **options):
    """Serve a trace and return the server and its records, each checked against the pages and the last one."""
    server = Server(model, *sizes, **options)
    records = []
    for record in play(server, requests):
        server.cache.check()
        hold(record, records[-1] if records else None, server)
        records.append(record)
        assert len(records) < 1000, "it does not end"
    assert not server.running and not server.waiting
    assert server.cache.used == 0 and server.cache.kept + server.cache.free_pages == server.cache.n_pages
    return server, records


def hold(record, before, server):
    """Check a record, given the one before it."""
    assert record.used + record.kept + record.free == server.cache.n_pages
    assert len(record.running) <= server.batch and sum(n for _, n in record.chunks) <= server.chunk
    assert list(record.running) == sorted(record.running) and list(record.waiting) == sorted(record.waiting)
    assert max(record.running, default=-1) < min(record.waiting, default=math.inf), "nobody overtakes"
    ran = set(before.running if before else ()) | {number for number, _ in record.admitted}
    assert set(record.running) == ran - set(record.preempted) - set(record.finished)
    assert not set(record.preempted) & ({number for number, _ in record.wrote} | set(record.decoded))
    assert set(record.preempted) <= set(record.waiting), "who is preempted waits again"
    if ran:
        oldest = min(ran)
        moved = {*record.decoded, *(number for number, _ in record.chunks)}
        assert oldest in moved and oldest not in record.preempted, "the oldest gets on"
    assert set(record.decoded) <= {number for number, _ in record.wrote}


def check_text(server, records, requests, model=MODEL):
    """Compare all that was written, in `written` and in the records, with what each request writes alone."""
    ordered = sorted(requests, key=lambda request: request.arrives)
    assert server.written == {number: alone(request, model) for number, request in enumerate(ordered)}
    wrote = {number: [] for number in server.written}
    for record in records:
        for number, token in record.wrote:
            wrote[number].append(token)
    assert wrote == server.written
    finished = Counter(number for record in records for number in record.finished)
    assert finished == Counter(server.written.keys())


@pytest.mark.parametrize("continuous", [True, False])
@pytest.mark.parametrize(
    "n_pages, page, options, amount",
    [
        (100, 4, {}, "few"),
        (12, 4, {"chunk": 5, "batch": 3}, "few"),
        (9, 4, {"chunk": 7}, "all"),  # the longest request takes 8
        (31, 1, {"chunk": 1, "batch": 5}, "all"),
        (3, 16, {"chunk": 40, "queue": 2}, "few"),
    ],
)
def test_each_request_writes_what_it_writes_alone(n_pages, page, options, amount, continuous):
    requests = trace(seed=n_pages)
    server, records = served(requests, n_pages, page, continuous=continuous, **options)
    check_text(server, records, requests)
    preempted = sum(len(record.preempted) for record in records)
    assert preempted == 0 if n_pages == 100 else preempted > 0 or not continuous
    if n_pages == 100 and continuous:
        assert any(record.decoded and record.chunks for record in records), "prompts beside decoding"
        assert any(known for record in records for _, known in record.admitted), "prompts that begin alike"


@pytest.mark.parametrize("over", ["gathered", "kernels"])
def test_both_ways_write_the_same_in_float32(over):
    model, requests = small(layers=1), trace(n=3, most=5, arrives=3)
    server, records = served(requests, 3, 4, model=model, chunk=3, over=way(over))
    check_text(server, records, requests, model)


@pytest.mark.parametrize("amount, seed", amounts(range(4), few=[1]))
def test_nothing_is_lost_under_random_traces(seed, amount):
    rng = np.random.default_rng(seed)
    requests = trace(seed=seed, n=25, most=12, arrives=int(rng.integers(1, 100)))
    page = int(rng.choice([1, 2, 4, 8]))
    n_pages = -(-24 // page) + int(rng.integers(8))
    options = {name: int(rng.integers(1, 9)) for name in ("chunk", "batch", "queue")}
    server, records = served(requests, n_pages, page, **options)
    assert len(server.written) == 25
    for number, request in enumerate(sorted(requests, key=lambda request: request.arrives)):
        assert len(server.written[number]) == request.most_new
        if number % 5 == 0:
            assert server.written[number] == alone(request)


def test_a_preempted_request_continues_where_it_was():
    requests = [Request(some(7, seed=i), 12, seed=i, temperature=1.0) for i in range(3)]
    server, records = served(requests, 11, 4, chunk=21)
    check_text(server, records, requests)
    victims = [number for record in records for number in record.preempted]
    assert victims and 0 not in victims
    number = victims[0]
    written = [record.step for record in records if number in dict(record.wrote)]
    at = next(record.step for record in records if number in record.preempted)
    again = next(record for record in records if record.step > at and number in dict(record.admitted))
    assert min(written) < at < again.step < max(written) and len(written) == 12, "no token is written twice"


def test_the_youngest_is_preempted_and_served_again_first():
    requests = [Request(some(7, seed=i), 12, seed=i) for i in range(4)]
    server, records = served(requests, 11, 4, chunk=28)
    for record in records:
        for number in record.preempted:
            assert number > max(record.running)
        for number, _ in record.admitted:
            assert number < min(record.waiting, default=4)
    first = [next(r.step for r in records if n in r.finished) for n in range(4)]
    assert first == sorted(first), "requests of one length finish in order"


def test_a_long_prompt_does_not_stall_the_others():
    short, long = Request(some(2), 15), Request(some(40), 2, arrives=4)
    _, records = served([short, long], 100, 4, chunk=6)
    chunks = [record for record in records if record.chunks and record.step >= 4]
    assert [n for record in chunks for _, n in record.chunks] == [6] * 6 + [4]
    assert all(record.decoded == (0,) for record in chunks)


def test_an_older_long_prompt_does_not_stall_the_others_either():
    long, short = Request(some(40), 2), Request(some(1), 5)
    _, records = served([long, short], 100, 4, chunk=6)
    assert [record.decoded for record in records[:5]] == [(1,)] * 5
    assert [record.chunks for record in records[:6]] == [((0, 6),)] * 6


def test_a_token_that_is_decoded_beside_the_last_chunk_has_its_page_or_waits():
    long, short = Request(some(20), 1), Request(some(1), 9)
    for n_pages in range(21, 26):
        server, records = served([long, short], n_pages, 1, chunk=5)
        check_text(server, records, [long, short])
        preempted = [number for record in records[:4] for number in record.preempted]
        assert preempted == ([1] if n_pages < 24 else []), "each has a page for a token, 20 and 4 after four steps"


def test_a_waiting_request_is_admitted_once_running_prompts_have_room_too():
    long, short = Request(some(20), 1), Request(some(9, seed=1), 1, arrives=1)
    for n_pages, step in ((28, 4), (29, 1)):  # 20 and 9 tokens, five a step of the first
        _, records = served([long, short], n_pages, 1, chunk=5)
        assert [record.step for record in records if (1, 0) in record.admitted] == [step]
        assert not any(record.preempted for record in records)


def test_common_beginnings_of_prompts_are_computed_once():
    begin = some(17)
    first, second = Request([*begin, 1, 2], 3), Request([*begin, 3], 3, arrives=1)
    server, records = served([first, second], 100, 4)
    assert dict(records[0].admitted) == {0: 0} and dict(records[1].admitted) == {1: 16}
    assert dict(records[1].chunks) == {1: 2}
    check_text(server, records, [first, second])


def test_continuous_batching_takes_fewer_steps_than_static_batching():
    requests = [Request(some(3, seed=i), n) for i, n in enumerate((30, 2, 2, 30, 2, 2, 30, 2, 2))]
    steps = {}
    for continuous in (True, False):
        server, records = served(requests, 100, 4, batch=3, continuous=continuous)
        steps[continuous] = len(records)
        check_text(server, records, requests)
        if not continuous:
            admitted = [len(record.admitted) for record in records if record.admitted]
            assert admitted == [3, 3, 3]
    assert steps[True] <= 40 < 90 <= steps[False]


def test_with_nothing_to_do_a_step_does_nothing():
    server = Server(MODEL, 5, 4)
    record = server.step()
    assert record.step == 0 and not any(record[1:7]) and record.free == 5
    waits = list(play(server, [Request([1], 1, arrives=4)]))
    assert [bool(record.wrote) for record in waits] == [False] * 3 + [True]


def test_a_full_queue_refuses_requests():
    server, request = Server(MODEL, 5, 4, queue=2, batch=1), Request(some(3), 4)
    assert [server.submit(request) for _ in range(2)] == [0, 1]
    with pytest.raises(QueueFull, match="2 requests wait, and the queue takes 2; submit it after a step"):
        server.submit(request)
    assert len(server.waiting) == 2
    server.step()
    assert server.submit(request) == 2
    while server.running or server.waiting:
        server.step()
    assert len({tuple(text) for text in server.written.values()}) == 1 and len(server.written) == 3


@pytest.mark.parametrize(
    "request_, error, message",
    [
        (
            Request(some(9), 13),
            ValueError,
            r"9 tokens and 13 new ones take 6 pages of 4, and the cache has 5",
        ),
        (
            Request(some(40), 9),
            ValueError,
            "the prompt has 40 tokens and 9 are to follow",
        ),
        (Request([], 3), ValueError, "the prompt is empty"),
        (Request("to be", 3), TypeError, "the prompt is a str"),
        (Request([61], 3), ValueError, "tokens go from 61"),
        (Request([1], 0), ValueError, "n is 0"),
        (Request([1], 2, temperature=-1), ValueError, "temperature is -1"),
        (Request([1], 2, seed=0.5), TypeError, "seed is 0.5"),
        (Request([1], 2, arrives=-1), ValueError, "arrives is -1"),
    ],
)
def test_requests_that_can_never_be_served_are_refused(request_, error, message):
    server = Server(MODEL, 5, 4)
    for refuses in (server.submit, lambda request: play(server, [Request([1], 1), request])):
        with pytest.raises(error, match=message):
            refuses(request_)
    assert not server.waiting and server.submit(Request(some(9), 12)) == 0, "5 pages are just enough"


@pytest.mark.parametrize("name", ["chunk", "batch", "queue"])
def test_a_server_has_at_least_one_of_each(name):
    with pytest.raises(ValueError, match=f"{name} is 0"):
        Server(MODEL, 5, 4, **{name: 0})


def test_a_prompt_that_is_changed_later_changes_nothing():
    prompt = some(5)
    server, request = Server(MODEL, 9, 4), Request(prompt, 3)
    expected = alone(request)
    server.submit(request)
    prompt[:] = [1]
    for _ in range(4):
        server.step()
    assert server.written == {0: expected}


@pytest.mark.parametrize("kind", ["in the model", "NaN"])
def test_all_requests_continue_after_an_error(kind):
    broken, requests = [], trace(n=6, arrives=1)

    def over(Q, K, V, layer, new):
        O = gathered(Q, K, V, layer, new)
        calls.append(layer)
        if len(calls) % 7:
            return O
        broken.append(len(calls))
        if kind == "NaN":
            return O * math.nan if layer == 1 else O  # after the last layer, it does not get into the cache
        raise RuntimeError("no memory")

    calls = []
    server = Server(MODEL, 12, 4, chunk=5, over=over)
    numbers = [server.submit(request) for request in requests]
    for _ in range(300):
        with contextlib.suppress(RuntimeError, ValueError):
            server.step()
        server.cache.check()
    assert len(broken) > 5 and server.cache.used == 0
    assert server.written == {n: alone(request) for n, request in zip(numbers, requests, strict=True)}
