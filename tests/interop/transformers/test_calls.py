"""The arguments that a model passes to its attention are honoured, or refused with an explanation."""

import inspect
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tests import required

required.package("transformers", "run make models")

import torch  # noqa: E402
import transformers  # noqa: E402
from transformers import AttentionInterface, CompileConfig, GenerationConfig, masking_utils  # noqa: E402
from transformers.integrations.flash_attention import flash_attention_forward  # noqa: E402
from transformers.integrations.flex_attention import flex_attention_forward  # noqa: E402
from transformers.integrations.sdpa_attention import sdpa_attention_forward  # noqa: E402
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS  # noqa: E402
from transformers.utils import TransformersKwargs  # noqa: E402

from flashlib import torch_ref  # noqa: E402
from flashlib.interop.transformers import attend, engines, register, standing_in, versions  # noqa: E402
from tests.interop.transformers.families import FAMILIES, TEXT, N  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
ENGINES = ("kernels", "tiles", "torch_ref")
CLOSE = dict(rtol=0, atol=5e-6)
LLAMA = FAMILIES["llama"]
IDS = TEXT["input_ids"]


def with_engine(family, engine, **changes):
    """Return a model with an engine, where that runs: kernels that are compiled need a GPU."""
    model = family.build(register(f"tested_{engine}", engine), **changes)
    if engine == "kernels":
        from flashlib import kernels

        model.to(kernels.DEVICE)
    return model


# What arrives.


@pytest.mark.parametrize("name", FAMILIES)
def test_every_argument_that_a_family_passes_is_known(name):
    given = {}

    def spy(module, query, key, value, attention_mask, **others):
        given.update({name: X for name, X in others.items() if X is not None})
        return query.new_zeros(*query.transpose(1, 2).shape[:3], value.shape[-1]), None

    AttentionInterface.register("spy", spy)
    with torch.no_grad():
        FAMILIES[name].output(FAMILIES[name].build("spy"))
    known = inspect.signature(attend.attention(torch_ref.attention)).parameters.keys()
    assert given.keys() <= known | attend.ANSWERED.keys() | attend.REFUSED.keys()


KEYWORDS = {
    "num_items_in_batch": torch.tensor(7),
    "output_hidden_states": True,
    "output_attentions": True,
    "output_router_logits": True,
    "cu_seq_lens_q": torch.tensor([0, 20, N], dtype=torch.int32),
    "cu_seq_lens_k": torch.tensor([0, 20, N], dtype=torch.int32),
    "max_length_q": 20,
    "max_length_k": 20,
    "position_ids": torch.cat([torch.arange(20), torch.arange(N - 20)])[None],
    "is_causal": False,
    "seq_idx": (torch.arange(N) >= 20).int()[None],
}
DECODERS = ("llama", "mistral", "qwen3", "gemma2", "gemma3", "deepseek_v3", "gpt2")


@pytest.mark.parametrize("keyword", KEYWORDS)
@pytest.mark.parametrize("name", DECODERS)
def test_each_keyword_is_honoured_or_refused(name, keyword):
    family, given = FAMILIES[name], {keyword: KEYWORDS[keyword]}
    ours, eager = with_engine(family, "torch_ref"), family.build("eager")
    with torch.no_grad():
        if keyword in attend.REFUSED:
            with pytest.raises(ValueError, match=f"{keyword} is given: "):
                family.output(ours, **given)
            return
        if keyword.startswith("cu_seq_lens"):  # eager ignores them, and takes packs by their positions
            given = {name: KEYWORDS[name] for name in ("cu_seq_lens_q", "cu_seq_lens_k")}
            plain = {"input_ids": IDS[:1], "use_cache": False}
            packs = plain | {"position_ids": KEYWORDS["position_ids"]}
            torch.testing.assert_close(ours(**given, **packs).logits, eager(**packs).logits, **CLOSE)
            changed = ours(**given, **plain).logits[:, 20:] - ours(**plain).logits[:, 20:]
            assert changed.abs().max() > 1e-3, "without positions they count too"
            return
        torch.testing.assert_close(family.output(ours, **given), family.output(eager, **given), **CLOSE)


@pytest.mark.parametrize("name", FAMILIES)
def test_attention_weights_are_refused_for_all_families(name):
    model = with_engine(FAMILIES[name], "torch_ref")
    with torch.no_grad(), pytest.raises(ValueError, match="output_attentions is given: no P is stored"):
        FAMILIES[name].output(model, output_attentions=True)


# What an attention of transformers may be given by name, as its own do, and what its masks are made from.
ATTENTION = {
    "module", "query", "key", "value", "attention_mask", "dropout", "scaling", "sliding_window", "softcap",
    "is_causal", "s_aux", "position_bias", "kwargs",
}  # fmt: skip
MASK = {
    "batch_size", "q_length", "kv_length", "q_offset", "kv_offset", "mask_function", "attention_mask",
    "local_size", "allow_is_causal_skip", "allow_is_bidirectional_skip", "use_vmap", "device", "dtype", "config",
    "kwargs",
}  # fmt: skip


def test_the_interface_asks_for_what_was_tried():
    """A failure names what a new version passes: look up what it means, and honour or refuse it."""
    theirs = (sdpa_attention_forward, flex_attention_forward, flash_attention_forward)
    asked = set().union(*(inspect.signature(f).parameters for f in theirs))
    assert asked == ATTENTION
    assert TransformersKwargs.__annotations__.keys() == KEYWORDS.keys()
    makers = (masking_utils.sdpa_mask, masking_utils.eager_mask, masking_utils.flex_attention_mask)
    assert set().union(*(inspect.signature(f).parameters for f in makers)) | {"config"} == MASK


def test_another_version_gets_a_warning(monkeypatch):
    monkeypatch.setattr(versions, "TRIED", ("1.2.3",))
    with pytest.warns(UserWarning, match=f"tried with transformers 1.2.3, and this is {transformers.__version__}"):
        versions.warn()
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        versions.warn()


# Masks.


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("padded", ["left", "right", "hole"])
@pytest.mark.parametrize("name", ["llama", "mistral", "llama4", "gpt_oss"])
def test_padding_is_not_seen(name, padded, engine):
    family, there = FAMILIES[name], torch.ones(2, N, dtype=torch.long)
    there[1, {"left": slice(0, 9), "right": slice(23, None), "hole": slice(8, 13)}[padded]] = 0
    with torch.no_grad():
        found, eager = (
            family.output(model, attention_mask=there)[there.bool()]
            for model in (with_engine(family, engine), family.build("eager"))
        )
    torch.testing.assert_close(found, eager, **CLOSE)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["llama", "mistral", "llama4"])
def test_packed_sequences_give_the_results_of_each_alone(name, engine):
    family, model = FAMILIES[name], with_engine(FAMILIES[name], engine)
    with torch.no_grad():
        one = family._replace(inputs={"input_ids": IDS[:1]})
        packed = one.output(model, position_ids=KEYWORDS["position_ids"], use_cache=False)
        parts = (slice(0, 20), slice(20, N))
        alone = [family._replace(inputs={"input_ids": IDS[:1, part]}).output(model) for part in parts]
    torch.testing.assert_close(packed, torch.cat(alone, 1), **CLOSE)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["bools", "what hides", "numbers"])
def test_a_table_may_be_given(kind, engine):
    table = (torch.rand(2, 1, N, N, generator=torch.Generator().manual_seed(3)) < 0.5) | torch.eye(N).bool()
    added = torch.rand(table.shape) if kind == "numbers" else torch.zeros(table.shape)
    added = added.masked_fill(~table, torch.finfo(torch.float32).min)
    with torch.no_grad():
        eager = LLAMA.output(LLAMA.build("eager"), attention_mask=added)
        given = table if kind == "bools" else added
        found = LLAMA.output(with_engine(LLAMA, engine), attention_mask=given)
    torch.testing.assert_close(found, eager, **CLOSE)


def test_masks_may_be_tables():
    model = LLAMA.build(register("tested_tables", "torch_ref", tables=True))
    with torch.no_grad():
        torch.testing.assert_close(LLAMA.output(model), LLAMA.output(LLAMA.build("eager")), **CLOSE)


CALLS = [  # N_q, N_k, is_causal, sliding_window, softcap
    (6, 6, True, None, None), (5, 9, True, None, 2.0), (5, 9, True, 3, None), (1, 9, True, None, None),
    (1, 9, True, 3, 2.0), (5, 9, False, 3, None), (9, 5, False, 4, 2.0), (9, 5, False, None, None),
]  # fmt: skip


@pytest.mark.parametrize("N_q, N_k, causal, width, cap", CALLS)
def test_arguments_say_what_is_seen_if_there_is_no_mask(N_q, N_k, causal, width, cap):
    Q, K, V = (torch.randn(2, h, n, 4, dtype=torch.float64) for h, n in ((4, N_q), (2, N_k), (2, N_k)))
    call = attend.attention(torch_ref.attention)
    O, _ = call(None, Q, K, V, None, scaling=0.7, is_causal=causal, sliding_window=width, softcap=cap)
    keys = N_q if causal and 1 < N_q < N_k else N_k  # those beyond are a static cache's, not written yet
    distance = torch.arange(keys) - torch.arange(N_q)[:, None] - (keys - N_q)
    S = 0.7 * Q @ K[:, :, :keys].repeat_interleave(2, 1).mT
    S = S if cap is None else cap * torch.tanh(S / cap)
    hidden = (distance > 0) & causal | (distance.abs() >= (width or 99))
    P = S.masked_fill(hidden, -torch.inf).softmax(-1).nan_to_num(0)
    torch.testing.assert_close(O, (P @ V[:, :, :keys].repeat_interleave(2, 1)).transpose(1, 2))


@pytest.mark.parametrize("watched", range(4))
def test_few_queries_have_every_requested_gradient(watched):
    """Q, K, V and a sink: without any the kernels decode, which has none."""
    from flashlib import kernels

    given = [torch.ones(shape, device=kernels.DEVICE) for shape in [(1, 2, 3, 16)] * 3 + [(2,)]]
    assert not engines.by_kernels(*given[:3], sink=given[3]).O.requires_grad
    given[watched].requires_grad_()
    engines.by_kernels(*given[:3], sink=given[3]).O.sum().backward()
    assert given[watched].grad is not None


def test_a_mask_made_for_different_keys_is_refused():
    model = with_engine(LLAMA, "torch_ref")
    mask = masking_utils.ALL_MASK_ATTENTION_FUNCTIONS["tested_torch_ref"](2, N, N)
    with pytest.raises(ValueError, match=r"made for B, N_q, N_k = \(2, 37, 37\), and there are \(2, 36, 36\)"):
        model(input_ids=IDS[:, 1:], attention_mask=mask)


@pytest.mark.parametrize("engine", ENGINES)
def test_plain_causal_calls_go_to_the_engine_at_once(engine, monkeypatch):
    """Every layer of a model calls it, so work before the engine costs CPU time."""
    monkeypatch.setattr(attend, "_untraced", None)
    with torch.no_grad():
        found = LLAMA.output(with_engine(LLAMA, engine))
        torch.testing.assert_close(found, LLAMA.output(LLAMA.build("eager")), **CLOSE)


# Caches.


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cache", [None, "dynamic", "static"])
@pytest.mark.parametrize("name", ["llama", "mistral", "gemma3", "llama4", "gpt_oss", "gpt2"])
def test_tokens_written_one_by_one_are_those_of_eager(name, cache, engine):
    """Over the ends of windows and chunks, of a prompt with padding and one without."""
    family, there = FAMILIES[name], torch.ones(2, 13, dtype=torch.long)
    there[1, :4] = 0
    kind = {"use_cache": False} if cache is None else {"cache_implementation": cache}
    settings = dict(
        max_new_tokens=7, do_sample=False, output_logits=True, return_dict_in_generate=True, eos_token_id=None,
        pad_token_id=0, disable_compile=True, **kind,
    )  # fmt: skip
    with torch.no_grad():
        found, eager = (
            model.generate(IDS[:, :13].to(model.device), attention_mask=there.to(model.device), **settings)
            for model in (with_engine(family, engine), family.build("eager"))
        )
    assert torch.equal(found.sequences.cpu(), eager.sequences)
    torch.testing.assert_close(torch.stack(found.logits).cpu(), torch.stack(eager.logits), **CLOSE)


@torch.no_grad()
@pytest.mark.parametrize("amount", ["all"])
@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2", "gpt_oss", "bert"])
def test_torch_compile_takes_masks_between_graphs(name, amount):
    """With a static cache `generate` compiles by itself on a GPU, and here if it is told to."""
    family = FAMILIES[name]
    torch._dynamo.reset()
    model, eager = with_engine(family, "torch_ref"), family.build("eager")
    found = family.output(torch.compile(model, backend="eager"))
    torch.testing.assert_close(found, family.output(eager), **CLOSE)
    if name != "bert":
        compiled = CompileConfig(backend="eager", mode=None)
        compiled._compile_all_devices = True
        settings = dict(max_new_tokens=4, do_sample=False, cache_implementation="static", eos_token_id=None)
        given = model.generate(IDS[:, :14], compile_config=compiled, **settings)
        assert torch.equal(given, eager.generate(IDS[:, :14], disable_compile=True, **settings))


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # Dynamo looks at it
@pytest.mark.parametrize("amount", ["all"])
def test_plain_causal_attention_is_traced(amount):
    counters = torch._dynamo.utils.counters
    torch._dynamo.reset()
    counters.clear()
    model = with_engine(LLAMA, "kernels")
    found = LLAMA.output(torch.compile(model, backend="aot_eager"))
    found.sum().backward()
    torch.testing.assert_close(found, LLAMA.output(LLAMA.build("eager")), **CLOSE)
    assert not any("_untraced" in reason for reason in counters["graph_break"])


@torch.no_grad()
@pytest.mark.parametrize("padding, amount", [(0, "all"), (4, "few")])
def test_a_step_with_a_static_cache_is_one_graph(padding, amount):
    """`generate` compiles it by itself on a GPU; with fullgraph a break between two graphs is an error."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    there = torch.ones(2, 14, dtype=torch.long)
    there[1, :padding] = 0
    compiled = CompileConfig(backend="aot_eager", mode=None, fullgraph=True)
    compiled._compile_all_devices = True
    settings = dict(
        max_new_tokens=5, do_sample=False, cache_implementation="static", eos_token_id=None, pad_token_id=0,
        output_logits=True, return_dict_in_generate=True,
    )  # fmt: skip
    one_layer = {"num_hidden_layers": 1}
    ours, eager = with_engine(LLAMA, "kernels", **one_layer), LLAMA.build("eager", **one_layer)
    found, expected = (
        model.generate(IDS[:, :14].to(model.device), attention_mask=there.to(model.device), **how, **settings)
        for model, how in ((ours, {"compile_config": compiled}), (eager, {"disable_compile": True}))
    )
    torch.testing.assert_close(torch.stack(found.logits).cpu(), torch.stack(expected.logits), **CLOSE)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1, "lengths are no numbers of a graph"


@pytest.mark.parametrize("amount", ["all"])
def test_continuous_batching_works_by_standing_in(amount):
    before = ALL_ATTENTION_FUNCTIONS["sdpa"]
    prompts = [IDS[0, :5].tolist(), IDS[1, :9].tolist(), IDS[0, 10:13].tolist()]
    settings = GenerationConfig(max_new_tokens=4, do_sample=False, eos_token_id=None, pad_token_id=0)
    called = []

    def counted(Q, K, V, *, causal=False, mask=None, scale=None):
        called.append(Q.shape)
        return torch_ref.attention(Q, K, V, causal=causal, mask=mask, scale=scale)

    with standing_in(counted) as name:
        model = LLAMA.build(name)
        small = transformers.ContinuousBatchingConfig(num_blocks=8, max_batch_tokens=64)  # else 9/10 of the memory
        found = model.generate_batch(prompts, generation_config=settings, continuous_batching_config=small)
    assert ALL_ATTENTION_FUNCTIONS["sdpa"] is before and called
    eager = LLAMA.build("eager")
    for prompt, one in zip(prompts, sorted(found.values(), key=lambda one: one.request_id), strict=True):
        expected = eager.generate(torch.tensor([prompt]), max_new_tokens=4, do_sample=False, eos_token_id=None)
        assert one.generated_tokens == expected[0, len(prompt) :].tolist()


# What is refused.


def test_an_unknown_keyword_is_refused_until_it_is_accepted():
    given = {"bar": torch.ones(1)}
    with torch.no_grad():
        with pytest.raises(TypeError, match="gives bar to its attention, and flashlib does not know"):
            LLAMA.output(with_engine(LLAMA, "torch_ref"), **given)
        accepts = LLAMA.build(register("tested_accept", "torch_ref", accept={"bar"}))
        torch.testing.assert_close(LLAMA.output(accepts, **given), LLAMA.output(LLAMA.build("eager")), **CLOSE)


@pytest.mark.parametrize("name", ["flash", "my_flash", "eager", "sdpa", "flex_attention", "mine/kernel", "", 3])
def test_names_with_a_meaning_in_transformers_are_refused(name):
    with pytest.raises(ValueError, match="name is .*'course'"):
        register(name)


@pytest.mark.parametrize("engine, error", [("kernel", ValueError), (None, TypeError), (3, TypeError)])
def test_unknown_engines_are_refused(engine, error):
    with pytest.raises(error, match="engine is .*'kernels', 'portable', 'tiles', 'torch_ref', or a function"):
        register("tested", engine)


def test_a_custom_function_is_an_engine_and_missing_parameters_are_named():
    def mine(Q, K, V, *, causal, scale):
        return torch_ref.attention(Q, K, V, causal=causal, scale=scale)

    register("tested_mine", mine)
    with torch.no_grad():
        torch.testing.assert_close(
            LLAMA.output(LLAMA.build("tested_mine")), LLAMA.output(LLAMA.build("eager")), **CLOSE
        )
        with pytest.raises(TypeError, match="your engine takes K, Q, V, causal, scale, and this model needs mask"):
            FAMILIES["mistral"].output(FAMILIES["mistral"].build("tested_mine"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("d", [8, 24])
def test_heads_of_any_width(d, engine):
    changes = dict(head_dim=d)
    with torch.no_grad():
        found = LLAMA.output(with_engine(LLAMA, engine, **changes))
        torch.testing.assert_close(found, LLAMA.output(LLAMA.build("eager", **changes)), **CLOSE)


@pytest.mark.parametrize("engine", ENGINES)
def test_bfloat16(engine):
    """Beside eager in the same precision, by the numbers of float32."""
    with torch.no_grad():
        exact = LLAMA.output(LLAMA.build("eager"))
        eager, found = (LLAMA.output(m.bfloat16()) for m in (LLAMA.build("eager"), with_engine(LLAMA, engine)))
    assert found.dtype == torch.bfloat16
    assert found.isfinite().all()  # else inf would pass where eager overflows too
    assert (found - exact).abs().max() <= 2 * (eager - exact).abs().max() + 1e-3


@pytest.mark.parametrize("engine", ENGINES)
def test_autocast(engine):
    with torch.no_grad():
        exact = LLAMA.output(LLAMA.build("eager"))
        errors = []
        for model in (LLAMA.build("eager"), with_engine(LLAMA, engine)):
            with torch.autocast(model.device.type, dtype=torch.bfloat16):
                errors.append((LLAMA.output(model) - exact).abs().max())
    assert 0 < errors[1] <= 2 * errors[0] + 1e-3 and errors[1].isfinite()


@pytest.mark.parametrize("name", ["mistral", "llama4", "gpt_oss"])
def test_gradient_checkpointing_works(name):
    family, grads = FAMILIES[name], []
    for again in (False, True):
        model = with_engine(family, "torch_ref").train()
        if again:
            model.activation_checkpointing_enable()
        family.output(model, use_cache=False).square().sum().backward()
        grads.append([p.grad for p in model.parameters()])
    for one, other in zip(*grads, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("way", [{"num_beams": 2}, {"prompt_lookup_num_tokens": 3}], ids=str)
@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_other_ways_to_generate(name, way):
    family, prompt = FAMILIES[name], IDS[:1, :9].repeat(1, 2)
    settings = dict(max_new_tokens=6, do_sample=False, eos_token_id=None, pad_token_id=0, **way)
    found, eager = (
        model.generate(prompt, **settings) for model in (with_engine(family, "torch_ref"), family.build("eager"))
    )
    assert torch.equal(found, eager)


WITHOUT = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "transformers":
            raise ModuleNotFoundError(name + " is blocked", name=name)
sys.meta_path.insert(0, Block())
import importlib.metadata
importlib.metadata.version = lambda name: (_ for _ in ()).throw(importlib.metadata.PackageNotFoundError(name))
try:
    import flashlib.interop.transformers
except ImportError as error:
    print(error)
"""


@pytest.mark.process
def test_without_transformers_a_sentence_says_so():
    done = subprocess.run([sys.executable, "-c", WITHOUT], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "transformers is not installed: run make models\n"


def test_engines_are_named():
    assert engines.ENGINES.keys() == {*ENGINES, "portable"}
