"""The exercises on families of models: an attention that they call, and which of them notices a mistake."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, wraps

from flashlib.checks.engine import Case, Finding, Known, Verdict, examine, exercise
from flashlib.checks.engine.program import ProgramText
from flashlib.checks.engine.solutions import Imported
from flashlib.checks.engine.value_text import describe_value, show
from flashlib.checks.engine.verdict import Outcome

# ---- an attention and its masks, called by models

NAME = "my_model_attention"  # in the registries of transformers
STATIC = "Llama with a static cache"
PAST_WINDOW = "Mistral past its window"  # the first key of its cache is at position kv_offset, not 0
GEMMA = "Gemma 2 with a different scale"
UNMASKED = "CLIP, which asks for no mask"
CHUNKS_PADDED = "Llama 4 with padding"  # where chunks begin depends on the sequence
# the simplest first: each asks for something that those before it do not
JUDGES = (
    "ViT", UNMASKED, "GPT-2", "Llama", "BERT", "Mistral", "Gemma 2", GEMMA, "GPT-OSS", "Llama 4", CHUNKS_PADDED,
    PAST_WINDOW, STATIC,
)  # fmt: skip


def called_by_models(answer: Callable) -> Callable:
    """Return a function of a judge: what its model computes with the attention and the masks of an answer."""

    def run(judge):
        two = answer()
        if not (isinstance(two, tuple | list) and len(two) == 2 and all(map(callable, two))):
            raise Finding("not_two", given=describe_value(two))
        return _computed(judge, *two)

    return run


def _computed(judge, attention, mask):
    """Return what a model computes. An attention that returns something else than a pair raises a Finding."""
    from transformers import AttentionInterface, AttentionMaskInterface

    @wraps(attention)
    def paired(*arguments, **words):
        found = attention(*arguments, **words)
        if not (isinstance(found, tuple | list) and len(found) == 2):
            raise Finding("no_pair", given=describe_value(found))
        return tuple(found)

    AttentionInterface.register(NAME, paired)
    AttentionMaskInterface.register(NAME, mask)
    return _of_model(judge, NAME)


@cache
def _right(judge):
    return _of_model(judge, "eager")


def _of_model(judge, attention):
    from flashlib.interop import families

    if judge == STATIC:
        return families.written(attention, "static").numpy()
    if judge == PAST_WINDOW:
        return families.written(attention, "dynamic", "Mistral", tokens=30, padding=12).numpy()
    if judge == GEMMA:
        return families.output("Gemma 2", attention, query_pre_attn_scalar=32).numpy()
    if judge == UNMASKED:
        return families.output("CLIP", attention).numpy()
    if judge == CHUNKS_PADDED:
        return families.output("Llama 4", attention, families.PADDED_LEFT).numpy()
    return families.output(judge, attention).numpy()


def _with_torch(text):
    return ProgramText(text, Imported("model_attention", "import torch"))


@exercise(
    title="An attention for real models", minutes=70, difficulty="hard", program=_with_torch,
    model=called_by_models, limit=180.0, needs=("transformers",),
)  # fmt: skip
def model_attention(answer: Callable, known: Known) -> Verdict:
    asked = []
    run = called_by_models(answer)

    def noting(judge):
        asked.append(judge)
        return run(judge)

    stages = [[Case(judge, (judge,), _right(judge), tolerance=1e-4)] for judge in JUDGES]
    verdict = examine(noting, stages, known, nan="nan for tokens that are not padding")
    if verdict.right:
        return replace(
            verdict, sentence="all eight families agree with eager, also past a window and with a static cache"
        )
    if not asked or verdict.outcome == Outcome.NOT_SOLVED:
        return verdict
    *agreed, last = asked
    raised = tuple(detail for detail in verdict.details if detail[0] == "raised")
    before = (("agrees", ", ".join(agreed)),) if agreed else ()
    return replace(verdict, details=(("judged by", last), *before, *raised))


# ---- which family notices

FAMILIES = "ViT", "GPT-2", "Llama", "BERT", "Mistral", "Gemma 2", "GPT-OSS", "Llama 4"
# Who notices each of six broken adapters. tests/interop/test_chapter.py compares with the models.
WITNESSES = {
    "A": ("Llama", "Mistral", "Gemma 2", "GPT-OSS", "Llama 4"),
    "B": ("Llama", "BERT", "Mistral"),
    "C": ("Mistral", "Gemma 2", "GPT-OSS", "Llama 4"),
    "D": ("Gemma 2",),
    "E": ("Llama", "Mistral"),
    "F": ("nobody",),
}


@exercise(title="Which family notices?", minutes=10, difficulty="medium")
def witness(answer: Callable, known: Known) -> Verdict:
    """Each adapter after the one before it, so that a mistake in one of them is named."""

    @wraps(answer)
    def judged(adapter):
        family = answer(adapter)
        if family is None:  # as where a return is missing
            return None
        if not (isinstance(family, str) and family in (*FAMILIES, "nobody")):
            raise Finding("unnamed", given=show(family), adapter=adapter)
        return WITNESSES[adapter][0] if family in WITNESSES[adapter] else family

    stages = [[Case(f"adapter {letter}", (letter,), right[0])] for letter, right in WITNESSES.items()]
    verdict = examine(judged, stages, known)
    if verdict.right:
        return replace(verdict, sentence="each of them is noticed where you say")
    shown = tuple(detail for detail in verdict.details if detail[0] == "input")
    return replace(verdict, details=shown)  # what is expected would be the answer
