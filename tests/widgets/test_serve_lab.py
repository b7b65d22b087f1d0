"""ServeLab shows what its Records say, and both runs write what each request writes alone."""

import base64
import json

import numpy as np
import pytest

pytest.importorskip("anywidget")
torch = pytest.importorskip("torch")

from flashlib import naive  # noqa: E402
from flashlib.lm.sampling import choose  # noqa: E402
from flashlib.widgets import ServeLab  # noqa: E402
from flashlib.widgets.serve_lab import account, runs, scenarios  # noqa: E402

NAMES = list(scenarios.SCENARIOS)
SIZES = [(4, 8, 16), (3, 7, 11), (1, 64, 8), (8, 5, 13)]  # batch, chunk, n_pages
FIRST = "short and long answers"


@pytest.fixture(scope="module", params=[(name, *sizes) for name in NAMES for sizes in SIZES], ids=str)
def lab(request):
    name, batch, chunk, n_pages = request.param
    lab = ServeLab(name, batch=batch, chunk=chunk, n_pages=n_pages)
    assert not lab.problem
    return lab


def both(lab):
    """Yield the shown data of each run, and the run."""
    for shown, continuous in zip(lab.result["runs"], (True, False), strict=True):
        yield shown, runs.run(**lab.result["setting"], continuous=continuous)


def test_the_records_are_those_of_requests_that_write_what_they_write_alone():
    """For a scenario in which requests are preempted: the model is run, and no text depends on the scheduler."""
    name = "too few pages"
    run = runs.run(name, 4, 8, 16, True)
    assert any(record.preempted for record in run.records)
    for k, (prompt, one) in enumerate(zip(scenarios.prompts(name), scenarios.SCENARIOS[name], strict=True)):
        assert run.written[k] == alone(prompt, one.answer, seed=k)


def test_it_opens_where_the_runs_differ_most(lab):
    """Among the steps in which the most requests do different things, it is the nearest to the middle."""
    steps, requests = lab.result["steps"], range(len(lab.result["requests"]))
    lanes = [[run["lanes"][k].ljust(steps) for k in requests] for run in lab.result["runs"]]
    differ = [sum(a[step] != b[step] for a, b in zip(*lanes, strict=True)) for step in range(steps)]
    assert differ[lab.result["opens"]] == max(differ)
    nearer = [abs(step - steps / 2) for step in range(steps) if differ[step] == max(differ)]
    assert abs(lab.result["opens"] - steps / 2) == min(nearer)


def alone(tokens, n, seed):
    """What the model writes after these tokens without a cache, computing the whole text again for each token."""
    prompt, model = len(tokens), runs.MODEL
    for _ in range(n):
        x = model.E[tokens]
        logits = (x + naive.attention(*(x @ model.W_QKV), causal=True).O) @ model.W.T
        tokens = [*tokens, choose(torch.from_numpy(logits[-1]), 1.0, seed, len(tokens))]
    return tokens[prompt:]


def test_a_fork_of_a_text_continues_like_the_text():
    """No scenario forks, but the cache still copies a page that two sequences share."""
    model, tokens = runs.MODEL, scenarios.prompts(FIRST)[0]
    cache = model.cache(8, runs.PAGE)
    sequence, _ = cache.start()
    model.step([tokens], cache, [sequence])
    assert len(tokens) % runs.PAGE, "the last page has room"
    fork = cache.fork(sequence)
    both = [model.step([[token]], cache, [one])[0, 0] for one, token in ((fork, 3), (sequence, 5))]
    again = model.step([[7], [7]], cache, [fork, sequence])[:, 0]
    for rest, logits in (([3], both[0]), ([5], both[1]), ([3, 7], again[0]), ([5, 7], again[1])):
        x = model.E[[*tokens, *rest]]
        expected = (x + naive.attention(*(x @ model.W_QKV), causal=True).O) @ model.W.T
        np.testing.assert_allclose(logits, expected[-1], atol=1e-12)


def test_what_a_request_writes_depends_on_all_that_is_before_it():
    prompt = scenarios.prompts(FIRST)[0]
    written = alone(prompt, 17, seed=0)
    assert len(set(written)) > 8
    assert alone(prompt, 17, seed=1) != written
    assert alone([prompt[0] ^ 1, *prompt[1:]], 17, seed=0) != written


def test_lanes_are_what_the_records_say(lab):
    for shown, run in both(lab):
        assert len(run.records) == shown["steps"]
        before = set()
        for record in run.records:
            step, letters = record.step, [lane[record.step] for lane in shown["lanes"]]
            of = {letter: [k for k, found in enumerate(letters) if found == letter] for letter in set(letters)}
            assert tuple(of.get(account.DECODES, ())) == tuple(sorted(record.decoded))
            assert sorted(record.preempted) == of.get(account.PREEMPTED, [])
            read = sorted(of.get(account.READS, []) + of.get(account.AGAIN, []))
            assert read == sorted(k for k, _ in record.chunks)
            assert {(k, n) for k in read for at, n, _ in shown["parts"][k] if at == step} == set(record.chunks)
            assert sorted(of.get(account.WAITS, [])) == sorted(set(record.waiting) - set(record.preempted))
            before |= set(record.finished)
            assert set(of.get(account.EMPTY, ())) <= before - set(record.finished)
            frame = shown["frames"][step]
            assert (frame["used"], frame["kept"], frame["free"]) == (record.used, record.kept, record.free)
            assert frame["taken"] == len({*record.running, *record.finished}) <= lab.batch
            assert frame["read"] <= lab.chunk and frame["wait"] == len(record.waiting)


def test_sums_are_those_of_the_records(lab):
    totals = {told: values for told, *values in lab.result["totals"]}
    requests = scenarios.SCENARIOS[lab.scenario]
    for column, (_, run) in enumerate(both(lab)):
        wrote = [(record.step, k) for record in run.records for k, _ in record.wrote]
        waits = [min(step for step, one in wrote if one == k) - r.arrives + 1 for k, r in enumerate(requests)]
        assert len(wrote) == sum(one.answer for one in requests)
        idle = [r for r in run.records if len({*r.running, *r.finished}) < lab.batch and r.waiting]
        computed = sum(n for r in run.records for _, n in r.chunks) + sum(len(r.decoded) for r in run.records)
        known = int(totals["tokens already cached"][column])
        needed = sum(one.prompt + one.answer - 1 for one in requests) - known
        wanted = {
            "steps": len(run.records),
            "tokens written a step": len(wrote) / len(run.records),
            "first token after, mean": np.mean(waits),
            "the same, at most": max(waits),
            "of these, while one waits": len(idle),
            "preemptions": sum(len(record.preempted) for record in run.records),
            "tokens computed again": computed - needed,
        }
        assert {name: float(totals[name][column]) for name in wanted} == pytest.approx(wanted, rel=5e-4)


def test_only_static_batching_has_empty_slots(lab):
    continuous, static = lab.result["runs"]
    assert not any(account.EMPTY in lane for lane in continuous["lanes"])
    if lab.batch == 1:
        assert continuous["lanes"] == static["lanes"], "one at a time: there is nothing to choose"
    assert "write the same tokens in both" in lab.result["equal"]


def test_each_scenario_shows_what_it_is_named_after():
    labs = {name: ServeLab(name) for name in NAMES}
    preempted = {name: any("x" in lane for lane in lab.result["runs"][0]["lanes"]) for name, lab in labs.items()}
    assert [name for name in NAMES if preempted[name]] == ["too few pages"]
    known = {name: dict((told, a) for told, a, _ in lab.result["totals"]) for name, lab in labs.items()}
    assert [name for name in NAMES if known[name]["tokens already cached"] != "0"] == ["the same beginning"]
    steps = {name: [run["steps"] for run in lab.result["runs"]] for name, lab in labs.items()}
    assert steps[FIRST][0] < 0.6 * steps[FIRST][1] and steps["all alike"][0] > 0.9 * steps["all alike"][1]
    long = [len(parts) for parts in labs["one long prompt"].result["runs"][0]["parts"]]
    assert max(long) >= 4


def test_words():
    continuous, static = ServeLab("too few pages").result["runs"]
    assert continuous["frames"][9]["words"] == (
        "Request 3 is preempted: too few pages were free. Requests 0, 1 and 2 decode. "
        "Requests 3, 4 and 5 wait: too few pages are free for request 3."
    )
    assert "6 tokens of request 3 are computed again, and its next token" in continuous["frames"][16]["words"]
    assert static["frames"][17]["words"].endswith("wait: 3 slots are empty, but the batch is not done.")
    assert continuous["frames"][-1]["words"] == "All requests have finished."


BAD = [
    (dict(scenario="x"), "scenario is 'x'; pass one of 'short and long answers', "),
    (dict(batch=0), "batch is 0; pass a whole number from 1 to 8."),
    (dict(chunk=65), "chunk is 65; pass a whole number from 1 to 64."),
    (dict(n_pages=True), "n_pages is True; pass a whole number from 8 to 64."),
    (dict(n_pages=7), "n_pages is 7; pass a whole number from 8 to 64."),
]


@pytest.mark.parametrize(("given", "sentence"), BAD, ids=range(len(BAD)))
def test_a_sentence_says_what_cannot_be_shown(given, sentence):
    lab = ServeLab(**given)
    assert lab.problem.startswith(sentence) and repr(lab) == f"ServeLab({lab.problem})"


def test_changes_from_the_page():
    lab = ServeLab()
    before = lab.result
    lab.set_state({"batch": 9})
    assert lab.refused.endswith("It stays 4.") and lab.result is before and lab.batch == 4
    change = {"scenario": "all alike", "chunk": 16}
    for more in ({}, {"batch": 3}, {"n_pages": 12}):
        change |= more
        lab.set_state(change)
        runs.run.cache_clear()
        assert lab.refused == "" and lab.result == ServeLab(**change).result, "as of one that begins there"


def test_it_can_be_sent_to_the_page():
    lab = ServeLab("the same beginning")
    assert json.loads(json.dumps(lab.result)) == lab.result
    data = lab._repr_mimebundle_()[0]
    assert data["text/plain"] == repr(lab) and "Static batching: 27 steps" in repr(lab)
    assert base64.b64decode(data["image/png"]) == lab.figure().png()
