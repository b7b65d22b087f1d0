"""Models of transformers are verified, timed and recorded; a made-up clock replaces a GPU's."""

import itertools
import json
import math

import pytest
import torch

from tests import required

required.package("transformers", "run make models")

from transformers import AttentionInterface, AttentionMaskInterface, CompileConfig  # noqa: E402
from transformers.masking_utils import sdpa_mask  # noqa: E402

from flashlib import torch_ref  # noqa: E402
from flashlib.bench import models, models_writing  # noqa: E402
from flashlib.bench.common import harness  # noqa: E402
from flashlib.interop import transformers as course  # noqa: E402
from tests.tiers import amounts  # noqa: E402

SMALL = {
    "num_hidden_layers": 2, "hidden_size": 48, "intermediate_size": 64, "num_attention_heads": 3,
    "num_key_value_heads": 1, "head_dim": 16, "vocab_size": 61, "max_position_embeddings": 256,
}  # fmt: skip
ENGINES = {name: models.ENGINES[name] for name in ("eager", "sdpa", "ours", "hopper")}
N = 37


@pytest.fixture(scope="module")
def registered():
    models.register()


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Two sequences of N tokens, and one that is longer."""
    monkeypatch.setattr(models, "TOKENS", 2 * N)


@pytest.fixture
def small(registered):
    return models.llama("cpu", **SMALL | {"num_hidden_layers": 1})


@pytest.fixture
def verifier(registered):
    return models.Verifier("cpu", **SMALL)


def test_weights_have_the_stated_size_and_rotary_angles_are_not_rounded():
    model = models.llama("meta")
    assert 0.9e9 < sum(W.numel() for W in model.parameters()) < 1.1e9
    assert {W.dtype for W in model.parameters()} == {torch.bfloat16}
    assert {X.dtype for X in model.buffers()} == {torch.float32}
    assert {X.device.type for X in itertools.chain(model.parameters(), model.buffers())} == {"meta"}


def test_the_reference_is_as_exact_as_fp32(verifier):
    X = models.tokens(verifier.model, N)
    found = models.ModelResults(verifier.exact, X)
    verifier.exact.double().set_attn_implementation("eager")  # whose softmax is in fp32
    logits, gradients = found.errors(models.ModelResults(verifier.exact, X))
    assert logits < 2e-6 and gradients < 1e-5


def test_all_engines_that_run_here_are_right(verifier):
    errors, left_out = verifier.verified(N, ENGINES)
    assert list(errors) == ["eager", "sdpa", "ours"] and verifier.bound_of == N
    assert left_out.keys() == {"hopper"} and "there is no GPU to run this kernel" in left_out["hopper"]
    assert all(models.within(found, errors["eager"]) for found in errors.values())
    assert 0 < errors["eager"][0] < 0.1 and 0 < errors["eager"][1] < 0.1


def wrong(name, attention):
    AttentionInterface.register(name, course.attend.attention(attention))
    AttentionMaskInterface.register(name, course.call_mask.mask_of_call)
    return name


def nan_in_a_gradient(Q, K, V, *, causal, scale):
    found = torch_ref.attention(Q, K, V, causal=causal, scale=scale)
    if found.O.requires_grad:
        found.O.register_hook(lambda G: G.index_fill(2, torch.tensor([3]), torch.nan))
    return found


WRONG = {
    "sees the future": lambda Q, K, V, *, causal, scale: torch_ref.attention(Q, K, V, scale=scale),
    "another scale": lambda Q, K, V, *, causal, scale: torch_ref.attention(
        Q, K, V, causal=causal, scale=1.2 * scale
    ),
    "no gradient of K": lambda Q, K, V, *, causal, scale: torch_ref.attention(
        Q, K.detach() + 0 * K, V, causal=causal, scale=scale
    ),
    "NaN in a gradient": nan_in_a_gradient,
}


@pytest.mark.parametrize("amount, mistake", amounts(WRONG, few=["no gradient of K", "NaN in a gradient"]))
def test_a_wrong_one_is_left_out(verifier, mistake, amount):
    name = wrong("wrong_" + mistake.replace(" ", "_"), WRONG[mistake])
    errors, left_out = verifier.verified(N, {"eager": "eager", "wrong": name})
    assert list(errors) == ["eager"]
    assert left_out["wrong"].startswith("wrong: errors")


def test_an_infinite_error_is_never_accepted():
    assert models.within((0.2, 0.2), (0.1, math.inf))
    assert not models.within((0.2, math.inf), (0.1, math.inf))
    assert not models.within((math.nan, 0.2), (0.1, math.inf))


def test_if_eager_does_not_fit_its_last_error_is_the_bound(verifier):
    def full(*given, **options):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 16.00 GiB")

    verifier.verified(N, {"eager": "eager"})
    AttentionInterface.register("full", full)
    AttentionMaskInterface.register("full", sdpa_mask)
    errors, left_out = verifier.verified(N + 2, {"eager": "full", "sdpa": "sdpa"})
    assert list(errors) == ["sdpa"] and verifier.bound_of == N
    assert left_out == {"eager": "OutOfMemoryError: CUDA out of memory. Tried to allocate 16.00 GiB"}


@pytest.fixture
def stage(small):
    """A clock on which each call takes longer than the one before; 8 MB are held, with the weights."""
    ticks = itertools.count(1)

    def clock(run, calls):
        run()
        tick = float(next(ticks)) * calls
        return models.CallTimes(tick, tick / 2)

    def held(run):
        run()
        return 8_000_000 - sum(W.nbytes for W in small.parameters())

    return models.Stage(small, clock, held, turns=3)


def test_rows_have_all_documented_fields(stage, verifier, tmp_path, monkeypatch):
    orders = []
    run = models.Stage.run
    monkeypatch.setattr(models.Stage, "run", lambda self, *given: (orders.append(given[1]), run(self, *given)))
    rows = list(models.rows(N, stage, verifier, ENGINES | {"ours": "sdpa"}))  # ours takes the time of a kernel
    assert [row["pass"] for row in rows] == ["step", "prefill"]
    for row in rows:
        assert row["N"] == row["bound_of"] == N and row["B"] == 2 and row["left_out"].keys() == {"hopper"}
        for key in ("ms", "cpu_ms", "tokens_s", "mb", "error", "gradients"):
            assert row[key].keys() == {"eager", "sdpa", "ours"}, key
        for name, ms in row["ms"].items():
            assert row["tokens_s"][name] == round(2 * N / ms * 1e3) and row["cpu_ms"][name] == ms / 2
        assert set(row["mb"].values()) == {8}
        assert f"2 x N {N}, {row['pass']}:" in models.summary(row)
    of_a_pass = ["sdpa", "sdpa", "ours", "ours", *["sdpa", "ours", "ours", "sdpa"] * 2, *["eager"] * 6]
    assert orders == 2 * of_a_pass
    assert rows[0]["ms"]["sdpa"] == 5  # the median of the second to the fourth turn: ticks 4, 5 and 8
    assert all(W.grad is None for W in stage.model.parameters())
    harness.write(tmp_path / "models.json", {"rows": rows})
    assert json.loads((tmp_path / "models.json").read_text())["rows"] == rows


def test_flex_is_compiled_at_some_lengths_only(stage, monkeypatch):
    asked = []

    class Verifier:
        bound_of = N

        def verified(self, length, engines):
            asked.append((length, list(engines)))
            return {}, {}

    monkeypatch.setattr(models, "WITH_FLEX", (N,))
    for length in (N, N + 1):
        list(models.rows(length, stage, Verifier(), models.ENGINES))
    assert asked == [(N, list(models.ENGINES)), (N + 1, ["eager", "sdpa", "ours", "hopper"])]


def test_an_engine_that_fails_later_is_left_out_of_that_pass_only(stage, verifier):
    clock = stage.clock

    def full(run, calls):
        if run.args[:2] == ("step", "eager"):
            raise torch.OutOfMemoryError("CUDA out of memory")
        return clock(run, calls)

    stage.clock = full
    step, prefill = models.rows(N, stage, verifier, {"eager": "eager", "sdpa": "sdpa"})
    assert step["ms"].keys() == {"sdpa"} and "out of memory" in step["left_out"]["eager"]
    assert prefill["ms"].keys() == {"sdpa", "eager"} and not prefill["left_out"]


def test_a_step_gives_the_gradients_of_all_weights_and_the_prefill_the_last_logits(small):
    X = models.tokens(small, N)
    loss = models.step(small, X)
    assert all(W.grad is not None and W.grad.isfinite().all() for W in small.parameters())
    with torch.no_grad():
        logits = small(input_ids=X, use_cache=False).logits
    expected = torch.nn.functional.cross_entropy(logits[0, :-1].float(), X[0, 1:])
    torch.testing.assert_close(loss, expected)
    found = models.prefill(small, X)
    assert found.shape == (1, 1, SMALL["vocab_size"])
    torch.testing.assert_close(found[:, 0], logits[:, -1], atol=0.01, rtol=0)


def test_the_backend_that_sdpa_takes_is_named(small):
    small.set_attn_implementation("sdpa")
    found = models.sdpa_backend(small, N)
    assert found == {"step": "flash_attention_for_cpu", "prefill": "flash_attention_for_cpu"}
    small.set_attn_implementation("eager")
    assert models.sdpa_backend(small, N)["step"] == "math"


# Writing.

SIZE = models_writing.WritingSize(11, 10)


@pytest.fixture
def here():
    """What lets `generate` compile without a GPU."""
    config = CompileConfig(backend="aot_eager", mode=None)
    config._compile_all_devices = True
    return config


@pytest.mark.parametrize("amount", ["few", "all"])
def test_ways_to_write_are_verified_and_timed(amount, small, here, monkeypatch):
    if amount == "few":
        monkeypatch.setattr(models_writing, "WAYS", [("ours", True), ("sdpa", False)])
    ticks = itertools.count(1)
    rows = models_writing.rows(small, SIZE, 3, here, lambda name, compiled: next(ticks) * 1e-3)
    assert [(row["engine"], row["compiled"]) for row in rows] == models_writing.WAYS
    for row in rows:
        assert row["left_out"] is None and row["graph_breaks"] == 0
        assert row["graphs"] == (1 if row["compiled"] else 0)
        assert 0 < row["error"] <= 2 * row["eager_error"]
        assert row["step_us"] == pytest.approx(1e6 / row["tokens_s"], rel=0.01)
        assert (row["prompt"], row["new"]) == SIZE
        assert models_writing.summary(row).strip().startswith(row["engine"])
    json.dumps(rows)


def test_the_clock_starts_after_some_tokens(small, monkeypatch):
    writer = models_writing.Writer(small, SIZE)
    times = iter([2.0, 5.0])
    monkeypatch.setattr(models_writing, "now", lambda: next(times))
    assert writer.seconds("sdpa", False) == 3.0 / (SIZE.new - models_writing.SKIP)


def test_a_wrong_way_to_write_is_not_timed(small, here, monkeypatch):
    name = wrong("wrong_writer", lambda Q, K, V, *, causal, scale: torch_ref.attention(Q, 3 * K, V, scale=scale))
    monkeypatch.setitem(models.ENGINES, "ours", name)
    monkeypatch.setattr(models_writing, "WAYS", [("sdpa", False), ("ours", False)])
    sdpa, ours = models_writing.rows(small, SIZE, 1, here, lambda *way: 1e-3)
    assert sdpa["left_out"] is None and ours["left_out"].startswith("wrong: error") and "tokens_s" not in ours
    assert "left out" in models_writing.summary(ours)


def test_a_sentence_says_why_nothing_can_be_timed(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert models.refused() is None
    monkeypatch.setattr(models.importlib.metadata, "version", lambda name: "5.17.0")
    assert models.refused() == "Models are timed by transformers 5.24.0, and this is 5.17.0: run make models."

    def missing(name):
        raise models.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(models.importlib.metadata, "version", missing)
    assert models.refused() == "Models are timed by transformers, which is not installed: run make models."
