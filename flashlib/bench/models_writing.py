"""Time how fast a model of transformers writes with `generate` and a static cache, for `bench.models`.

A row is an engine, "sdpa" or "ours", and whether torch compiles a step, with CUDA graphs, as `generate` does by
default on a GPU unless disable_compile is set. One sequence: `prompt` tokens, and `new` greedy ones.

    tokens_s      of the tokens from number SKIP on, in wall-clock time: the median of several turns, whose
                  order alternates. A new cache is made in each turn, and CUDA graphs may be captured again
    step_us       the time of one step
    error         the largest error of the logits of all new tokens of a given text, against the same weights in
                  fp32 without a cache; at most twice that of eager with the same cache, or the row is not timed
                  and `left_out` says why
    graphs        how many graphs torch made of a step; graph_breaks: how often it broke a graph off
"""

import copy
import functools
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from flashlib.bench import models_llama
from flashlib.bench.common import harness
from flashlib.private_apis.of_torch import graphs_made
from flashlib.types import Record

WAYS = [(name, compiled) for compiled in (True, False) for name in ("sdpa", "ours")]
SKIP = 8


class WritingSize(NamedTuple):
    """A prompt, and how many tokens are written after it."""

    prompt: int
    new: int


SIZE, QUICK = WritingSize(2048, 136), WritingSize(256, 24)


class ForcedText:
    """A logits processor that makes a model write a given text, (1, N)."""

    def __init__(self, text: torch.Tensor) -> None:
        self.text = text

    def __call__(self, written: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        next_token = self.text[:, written.shape[1] : written.shape[1] + 1]
        return torch.full_like(scores, -torch.inf).scatter_(1, next_token, 0.0)


class TokenTimer:
    """A stopping criterion that never stops: it records the time when token number `at` is written."""

    def __init__(self, at: int) -> None:
        self.at, self.calls, self.time = at, 0, 0.0

    def __call__(self, written: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        self.calls += 1
        if self.calls == self.at:
            self.time = now()
        return torch.zeros(len(written), dtype=torch.bool, device=written.device)


def now() -> float:
    """Return the time when all launched work on the GPU is done."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


class Writer:
    """Writes with a model after the prompt of a text. compile_config: see transformers; None for its default."""

    def __init__(self, model: Any, size: WritingSize, compile_config: Any = None) -> None:
        self.model, self.size, self.compile_config = model, size, compile_config
        self.text = models_llama.tokens(model, size.prompt + size.new)

    def write(self, name: str, compiled: bool, **more: Any) -> Any:
        """Return the output of `generate` with an engine."""
        self.model.set_attn_implementation(models_llama.ENGINES[name])
        how = {"compile_config": self.compile_config} if compiled and self.compile_config else {}
        prompt = self.text[:, : self.size.prompt]
        return self.model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=self.size.new, do_sample=False,
            cache_implementation="static", disable_compile=not compiled, pad_token_id=0, **how, **more,
        )  # fmt: skip

    def logits(self, name: str, compiled: bool) -> torch.Tensor:
        """Return the logits of each new token of the text, (new, vocab)."""
        found = self.write(
            name,
            compiled,
            logits_processor=[ForcedText(self.text)],
            output_logits=True,
            return_dict_in_generate=True,
        )
        if not torch.equal(found.sequences, self.text):
            raise AssertionError("generate wrote another text than the one that was given")
        return torch.cat(found.logits).clone()

    @torch.no_grad()
    def exact(self) -> torch.Tensor:
        """Return the same in fp32, for the whole text."""
        model = copy.deepcopy(self.model).float()
        model.set_attn_implementation(models_llama.REFERENCE)
        given = {"input_ids": self.text[:, :-1], "use_cache": False, "logits_to_keep": self.size.new}
        return model(**given).logits[0]

    def seconds(self, name: str, compiled: bool) -> float:
        """Return the seconds per token, from token number SKIP on."""
        mark = TokenTimer(SKIP)
        self.write(name, compiled, stopping_criteria=[mark])
        return (now() - mark.time) / (self.size.new - SKIP)


@torch.no_grad()
def rows(
    model: Any, size: WritingSize, turns: int, compile_config: Any = None, clock: Callable | None = None
) -> list[Record]:
    """Return the rows: all are verified first, then the correct ones are timed in turn."""
    torch.compiler.reset()
    writer = Writer(model, size, compile_config)
    exact = writer.exact()
    models_llama.give_back()
    bound = _error(writer.logits("eager", False), exact)
    found = {way: verified(writer, way, exact, bound) for way in WAYS}
    taken: dict = {way: [] for way, row in found.items() if not row["left_out"]}
    for turn in range(turns):
        for way in reversed(taken) if turn % 2 else taken:
            taken[way].append((clock or writer.seconds)(*way))
    for way, seconds in taken.items():
        each = statistics.median(seconds)
        found[way] |= {"tokens_s": round(1 / each, 1), "step_us": round(each * 1e6, 1)}
    return list(found.values())


def verified(writer: Writer, way: tuple[str, bool], exact: torch.Tensor, bound: float) -> Record:
    """Return a row without times. bound: eager's error."""
    before = graphs_made()
    logits, reason = models_llama.attempt(functools.partial(writer.logits, *way))
    graphs, breaks = (late - early for late, early in zip(graphs_made(), before, strict=True))
    error = None if logits is None else _error(logits, exact)
    if error is not None and not error <= 2 * bound:
        reason = f"wrong: error {error:.3g}, at most {2 * bound:.3g} accepted"
    if reason:
        harness.say(f"{way[0]:>8}, compiled = {way[1]}: left out, {reason}")
    row = {"engine": way[0], "compiled": way[1], **writer.size._asdict(), "graphs": graphs, "graph_breaks": breaks}
    return row | {
        "error": error and float(f"{error:.3g}"),
        "eager_error": float(f"{bound:.3g}"),
        "left_out": reason,
    }


def _error(logits, exact):
    return (logits.double() - exact.double()).abs().max().item()


def summary(row: Record) -> str:
    """Return a row as a line."""
    name = f"  {row['engine']:>8} {'compiled' if row['compiled'] else 'as it is':>8}"
    if row["left_out"]:
        return f"{name} left out: {row['left_out']}"
    speed = f"{row['tokens_s']:8.1f} tokens/s, {row['step_us']:8.1f} us a step"
    return f"{name} {speed}, {row['graphs']} graphs, {row['graph_breaks']} breaks, error {row['error']:.3g}"
