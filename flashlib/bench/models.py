"""Time a language model of about a billion weights with our attention and others, through transformers.

    python -m flashlib.bench.models --out notebooks/data/h200_models.json

One CUDA device, bf16, B sequences of N tokens, TOKENS in all, or one sequence. The model is transformers' own
Llama, with the heads of Qwen 3 and random weights made here, since the values of the weights do not affect the
times. The engines differ only in how attention is computed:

    eager    transformers' own, which stores S and P
    sdpa     torch's, with the backend of its own choice: `sdpa_backend` says which
    flex     torch's FlexAttention, compiled for each N of WITH_FLEX, which takes a quarter of a minute
    ours     the portable kernels, bit for bit the same every time; hopper: Hopper's, both passes

    rows     "pass" is "step": loss and gradients of all weights, from token ids, and nothing else, so no
             optimizer; or "prefill": all tokens through the model, to the logits of the last, with no cache kept.
             ms: medians of five turns, whose order alternates; eager runs alone, after the others, as its memory
             is taken from theirs. cpu_ms: until Python had launched all of it on the GPU; if it is near ms,
             the CPU is the limit. tokens_s: B N over ms. mb: the peak memory of a pass, with the weights,
             which are `weights_mb`. error: the largest of the logits; gradients: the largest error of a
             weight's gradient, rms over the rms of that gradient; of a model of DEPTH layers, against fp32,
             and at most twice eager's, or it is not timed and `left_out` says why. `bound_of`: the N at which
             eager's error was computed, the largest up to N that fits. `kernels`: see `common.records`
    writing  see `bench.models_writing`; it comes first, so that an interrupted run has it
"""

import argparse
import copy
import functools
import gc
import importlib.metadata
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from flashlib.bench.common import harness, records
from flashlib.bench.models_llama import ENGINES, REFERENCE, SIZES, attempt, give_back, llama, register, tokens
from flashlib.types import Record

DEPTH = 2
TOKENS = 8192  # enough for the GPU to decide the time, not Python, and for each multiprocessor to have work
LENGTHS = 1024, 2048, 4096, 8192, 16384
WITH_FLEX = 4096, 16384
CALLS = {"step": 1, "prefill": 2}  # in a row
NOTED = 4096  # N of the row that records what was compiled: longer ones run the same code
TURNS = 5


def batch(model: Any, N: int) -> torch.Tensor:
    """Return the ids of sequences of N tokens, TOKENS in all, or those of one sequence."""
    return tokens(model, N, max(1, TOKENS // N))


def step(model: Any, X: torch.Tensor) -> torch.Tensor:
    """Compute the loss and the gradients of all weights; return the loss."""
    model.zero_grad(set_to_none=True)
    loss = model(input_ids=X, labels=X, use_cache=False).loss
    loss.backward()
    return loss.detach()


@torch.no_grad()
def prefill(model: Any, X: torch.Tensor) -> torch.Tensor:
    """Return the logits for the token after the last."""
    return model(input_ids=X, use_cache=False, logits_to_keep=1).logits


PASSES = {"step": step, "prefill": prefill}


class ModelResults:
    """The results of a model of DEPTH layers for a text: all logits, and the gradient of each weight, in fp64."""

    def __init__(self, model: Any, X: torch.Tensor) -> None:
        with torch.no_grad():
            self.logits = model(input_ids=X, use_cache=False).logits
        step(model, X)
        self.gradients = {name: W.grad for name, W in model.named_parameters()}
        model.zero_grad(set_to_none=True)

    def errors(self, exact: "ModelResults") -> tuple[float, float]:
        """Return the largest error of the logits, and the largest relative error of a weight's gradient."""
        pairs = ((X, exact.gradients[name]) for name, X in self.gradients.items())
        relative = [((X.double() - G.double()).norm() / G.double().norm()).item() for X, G in pairs]
        logits = (self.logits.double() - exact.logits.double()).abs().max().item()
        return logits, float(torch.tensor(relative).max())  # NaN propagates


class Verifier:
    """Verifies engines with a model of DEPTH layers: at most twice eager's error against fp32 is accepted."""

    def __init__(self, device: str, **sizes: int) -> None:
        self.model = llama(device, **sizes | {"num_hidden_layers": DEPTH})
        self.exact = copy.deepcopy(self.model).float()
        self.exact.set_attn_implementation(REFERENCE)
        self.bound: tuple[float, float] | None = None
        self.bound_of: int | None = None

    def verified(self, N: int, engines: dict[str, str]) -> tuple[dict, dict]:
        """Return both errors of each correct engine, by name, and why the others are left out."""
        X, errors, left_out = batch(self.model, N), {}, {}
        exact = ModelResults(self.exact, X)
        for name, implementation in engines.items():  # eager comes first
            found, reason = attempt(functools.partial(self._errors, implementation, X, exact))
            if found is not None and name == "eager":
                self.bound, self.bound_of = found, N
            if found is not None and self.bound is not None and not within(found, self.bound):
                reason = f"wrong: errors {found[0]:.3g} and {found[1]:.3g}, eager's {self.bound[0]:.3g} and "
                reason += f"{self.bound[1]:.3g}"
            if reason:
                left_out[name] = reason
                harness.say(f"{name:>8} at N = {N}: left out, {reason}")
            else:
                errors[name] = found
        return errors, left_out

    def _errors(self, implementation, X, exact):
        self.model.set_attn_implementation(implementation)
        return ModelResults(self.model, X).errors(exact)


def within(errors: tuple[float, float], bound: tuple[float, float]) -> bool:
    """Return whether both errors are at most twice those of a bound; NaN and inf never are."""
    return all(math.isfinite(error) and error <= 2 * most for error, most in zip(errors, bound, strict=True))


def sdpa_backend(model: Any, N: int) -> dict[str, str]:
    """Return the operator of torch that SDPA calls, for each pass."""
    return {name: _operator(functools.partial(run, model, batch(model, N))) for name, run in PASSES.items()}


def _operator(run):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], acc_events=True) as profile:
        run()
    begin = "aten::_scaled_dot_product_"
    names = {event.key for event in profile.key_averages() if event.key.startswith(begin)}
    names = {name.removeprefix(begin).removesuffix("_backward") for name in names}
    return " ".join(sorted(names - {"attention"})) or "math"


class CallTimes(NamedTuple):
    """Milliseconds of a call: on the GPU's clock, and until Python had launched all of it."""

    ms: float
    cpu_ms: float


def cuda_clock(run: Callable[[], object], calls: int) -> CallTimes:
    """Return the milliseconds of a call on the GPU, measured over several in a row."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin = time.perf_counter()
    start.record()
    for _ in range(calls):
        run()
    end.record()
    asked = time.perf_counter() - begin
    torch.cuda.synchronize()
    return CallTimes(start.elapsed_time(end) / calls, asked * 1e3 / calls)


def timed(runs: dict[str, Callable[[], object]], calls: int, clock: Callable, turns: int) -> dict[str, CallTimes]:
    """Return the median milliseconds of each run over turns, whose order alternates; the first turn warms up."""
    taken: dict[str, list[CallTimes]] = {name: [] for name in runs}
    for turn in range(turns + 1):
        for name in reversed(runs) if turn % 2 else runs:
            taken[name].append(clock(runs[name], calls))
    return {name: CallTimes(*map(statistics.median, zip(*ms[1:], strict=True))) for name, ms in taken.items()}


def cuda_held(run: Callable[[], object]) -> int:
    """Return the peak memory of torch on the GPU during run() in bytes, beyond what it held before."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


class Stage:
    """A model, how to time it and how to measure its memory; turns: the number of timed turns."""

    def __init__(self, model: Any, clock: Callable = cuda_clock, held: Callable = cuda_held, turns: int = TURNS):
        self.model, self.clock, self.held, self.turns = model, clock, held, turns

    def run(self, which: str, name: str, X: torch.Tensor) -> None:
        """Run a pass with an engine."""
        self.model.set_attn_implementation(ENGINES[name])
        PASSES[which](self.model, X)

    def _held(self, run):
        """Return the peak memory of a pass in bytes, including the weights; another model may be in memory too."""
        run()  # the first call creates handles, and compiles
        self.model.zero_grad(set_to_none=True)
        return self.held(run) + sum(W.nbytes for W in self.model.parameters())

    def row(self, which: str, N: int, names: list[str]) -> Record:
        """Return the row of a pass at N tokens, for the verified engines."""
        X, ms, mb, left_out = batch(self.model, N), {}, {}, {}
        for part in ([name for name in names if name != "eager"], [name for name in names if name == "eager"]):
            runs: dict[str, Callable[[], object]] = {}
            for name in part:
                run = functools.partial(self.run, which, name, X)
                bytes_held, reason = attempt(functools.partial(self._held, run))
                if bytes_held is None:
                    left_out[name] = reason
                    harness.say(f"{name:>8} at N = {N}, {which}: left out, {reason}")
                else:
                    runs[name], mb[name] = run, round(bytes_held / 1e6)
            found, reason = attempt(functools.partial(timed, runs, CALLS[which], self.clock, self.turns))
            if reason:
                left_out |= dict.fromkeys(runs, reason)
            ms |= found or {}
            give_back()  # before eager takes the memory, and after
        self.model.zero_grad(set_to_none=True)
        row = {"B": len(X), "N": N, "pass": which, "ms": {name: round(t.ms, 3) for name, t in ms.items()}}
        row |= {"cpu_ms": {name: round(t.cpu_ms, 3) for name, t in ms.items()}}
        row |= {"tokens_s": {name: round(X.numel() / t.ms * 1e3) for name, t in ms.items()}}
        return row | {"mb": {name: mb[name] for name in ms}, "left_out": left_out}


def rows(N: int, stage: Stage, verifier: Verifier, engines: dict[str, str]) -> Iterator[Record]:
    """Yield the rows of N tokens, one for each pass."""
    torch.compiler.reset()  # FlexAttention is compiled for this N only
    asked = {name: engine for name, engine in engines.items() if name != "flex" or N in WITH_FLEX}
    with harness.stopwatch("verified"):
        errors, left_out = verifier.verified(N, asked)
    of_logits, of_gradients = ({name: float(f"{e[k]:.3g}") for name, e in errors.items()} for k in (0, 1))
    for which in PASSES:
        with harness.stopwatch(which):
            row = stage.row(which, N, list(errors))
        row["left_out"] = left_out | row["left_out"]
        yield row | {"error": of_logits, "gradients": of_gradients, "bound_of": verifier.bound_of}


def summary(row: Record) -> str:
    """Return a row as lines."""
    lines = [f"{row['B']} x N {row['N']}, {row['pass']}:"]
    for name, ms in row["ms"].items():
        errors = f"errors {row['error'][name]:.3g}, {row['gradients'][name]:.3g}"
        lines.append(
            f"  {name:>8} {ms:9.2f} ms {row['tokens_s'][name]:>8} tokens/s {row['mb'][name]:>7} MB  {errors}"
        )
    return "\n".join(lines)


def noted(notes: records.Notes, row: Record) -> None:
    """Record in a row what both of our engines are compiled to."""
    size = {"d": SIZES["head_dim"], "causal": True}
    heads = SIZES["num_attention_heads"], SIZES["num_key_value_heads"]
    names = "forward", "backward_dkv", "backward_dq", "hopper_forward", "hopper_backward"
    notes.add(row, size | {"shape": [row["B"], *heads, row["N"]]}, {name: {} for name in names})


def refused() -> str | None:
    """Return why nothing can be timed on this machine, or None."""
    if not torch.cuda.is_available():
        return "Models are timed on a CUDA device; torch finds none. Recorded runs are in notebooks/data."
    try:
        version = importlib.metadata.version("transformers")
        from flashlib.interop.transformers.versions import TRIED
    except ImportError:
        return "Models are timed by transformers, which is not installed: run make models."
    if version not in TRIED:  # masks that are not recognised are evaluated for each score
        return f"Models are timed by transformers {' or '.join(TRIED)}, and this is {version}: run make models."
    return None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.models", description=__doc__)
    parser.add_argument("--out", help="a JSON file to record the run in")
    parser.add_argument("--quick", action="store_true", help="N = 1024 only, a turn of each, 16 tokens written")
    args = parser.parse_args()
    if reason := refused():
        sys.exit(reason)
    from flashlib.bench import models_writing as writing  # only here: it needs Triton

    register()
    lengths, turns = ((LENGTHS[0],), 1) if args.quick else (LENGTHS, TURNS)
    with harness.stopwatch("all"), records.Notes(harness.capability()) as notes:
        record = harness.environment() | {"transformers": importlib.metadata.version("transformers")}
        record |= {"dtype": "bfloat16", **SIZES, "depth": DEPTH, "tokens": TOKENS, "rows": []}
        save = functools.partial(harness.write, args.out, record) if args.out else lambda: None
        with harness.stopwatch("writing"):
            record["writing"] = writing.rows(llama("cuda"), writing.QUICK if args.quick else writing.SIZE, turns)
        harness.say(*map(writing.summary, record["writing"]), sep="\n")
        save()
        afresh()
        stage, verifier = Stage(llama("cuda"), turns=turns), Verifier("cuda")
        record["weights"] = sum(W.numel() for W in stage.model.parameters())
        record["weights_mb"] = round(2 * record["weights"] / 1e6)
        stage.model.set_attn_implementation("sdpa")
        record["sdpa_backend"] = sdpa_backend(stage.model, lengths[-1])
        harness.say(", ".join(f"{key} {value}" for key, value in record.items() if not isinstance(value, list)))
        for N in lengths:
            with harness.stopwatch(f"N = {N}"):
                for row in rows(N, stage, verifier, ENGINES):
                    record["rows"].append(row)
                    harness.say(summary(row))
                    if (N, row["pass"]) == (NOTED, "step"):
                        noted(notes, row)
                    save()
        notes.finish()
        save()


def afresh() -> None:
    """Discard what was compiled, and with it the memory of its CUDA graphs."""
    torch.compiler.reset()
    gc.collect()
    give_back()


if __name__ == "__main__":
    main()
