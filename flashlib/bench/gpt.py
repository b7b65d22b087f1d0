"""Train the same small GPT with our attention and with others, on one CUDA device, in bf16.

    python -m flashlib.bench.gpt --out notebooks/data/h200_gpt.json

Weights and batches are the same in every run. Before training, each model's logits on the first batch are verified
against those in fp32; the loss of its first step is compared too. One run with our attention is trained to the
end, and three with SDPA's flash, which adds up gradients in a changing order, so that its runs differ by chance.
`apart` has the largest distance between the smoothed curves of each pair of these four. The other runs take only
the first steps of the same schedule, which is enough to measure time and memory: standard attention, and ours with
activation checkpointing and in `torch.compile`. ms is the median time of a step on the GPU's clock, without the
first steps; MB is the peak memory that torch held. The text, in the public domain, is the start of Shakespeare's
plays from data/tinyshakespeare of github.com/karpathy/char-rnn.
"""

import argparse
import functools
import itertools
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from flashlib.bench.common import harness, records
from flashlib.bench.common.peers import PEERS
from flashlib.lm import tokenizer, training
from flashlib.lm.model import LM, Config

TEXT = Path(__file__).resolve().parents[2] / "notebooks" / "data" / "shakespeare.txt"
SIZES = {"layers": 6, "width": 512, "heads": 8, "kv_heads": 8, "context": 4096}
BATCH, STEPS, SHORT, WARMUP, LR = 8, 300, 40, 10, 1e-3
WINDOW = 20  # steps in each mean of a smoothed curve
BF16 = 2**-9  # the largest relative error of rounding to it


def ours(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool) -> torch.Tensor:
    from flashlib.kernels import autograd  # only when called: Triton may not be installed

    return autograd.attention(Q, K, V, causal=causal).O


def checkpointed(model: LM) -> LM:
    """Save only the input of each block; the inside of the block is recomputed in the backward pass."""
    options: dict = {"use_reentrant": False, "preserve_rng_state": False}  # nothing in a block is random
    for block in model.blocks:
        block.forward = functools.partial(checkpoint, block.forward, **options)
    return model


def compiled(model: torch.nn.Module) -> Callable:
    return torch.compile(model, fullgraph=True)


class TrainingRun(NamedTuple):
    """A model to train. whole: to the end; else for SHORT steps. needed: its failure fails the benchmark."""

    name: str
    attention: Callable
    prepare: Callable = lambda model: model
    whole: bool = False
    needed: bool = True


RUNS = [
    TrainingRun("ours", ours, whole=True),
    TrainingRun("sdpa_flash", PEERS["sdpa_flash"], whole=True),
    TrainingRun("sdpa_flash_again", PEERS["sdpa_flash"], whole=True),
    TrainingRun("sdpa_flash_third", PEERS["sdpa_flash"], whole=True),
    TrainingRun("eager", PEERS["eager"]),
    TrainingRun("ours_checkpointed", ours, checkpointed, needed=False),
    TrainingRun("ours_compiled", ours, compiled, needed=False),
]


class TrainingProblem:
    """One model and text: the tokens, the first batch, and the logits of standard attention for it.

    exact: in fp32; plain: in bf16.
    """

    def __init__(self, text: str, sizes: dict[str, int], batch: int, steps: int, device: str = "cuda") -> None:
        tokens, alphabet = tokenizer.encode_characters(text)
        self.config = Config(vocab=len(alphabet), **sizes)
        self.tokens, self.batch, self.steps = tokens.to(device), batch, steps
        self.X, self.Y = next(training.batches(self.tokens, self.config.context, batch))
        model = self.model(PEERS["eager"])
        with torch.no_grad():
            self.exact, self.plain = model(self.X), self.logits(model)
            self.loss = cross_entropy(self.exact.flatten(0, 1), self.Y.flatten()).item()

    def model(self, attention: Callable | None) -> LM:
        return LM(self.config, attention).to(self.tokens.device)

    def logits(self, model: Callable) -> torch.Tensor:
        with torch.autocast(self.tokens.device.type, torch.bfloat16):
            return model(self.X).detach()


def train(run: TrainingRun, problem: TrainingProblem) -> dict:
    """Return the row of one run. If a run that is not needed fails, ms is None and `reason` says why."""
    row = {"run": run.name, "ms": None, "mb": None, "loss": []}
    try:
        return row | verified_and_trained(run, problem)
    except Exception as error:  # whatever a compiler, a driver or a library raises
        if run.needed:
            raise
        return row | {"reason": harness.reason(error)}


def verified_and_trained(run: TrainingRun, problem: TrainingProblem) -> dict:
    model = run.prepare(problem.model(run.attention))
    harness.verify(f"{run.name}'s model", problem.logits(model), problem.exact.double(), problem.plain)
    steps = training.train(model, problem.tokens, problem.steps, batch=problem.batch, lr=LR)
    losses, ms, held = harness.watch(steps if run.whole else itertools.islice(steps, SHORT))
    losses = [loss.item() for loss in losses]
    if not abs(losses[0] - problem.loss) <= BF16 * problem.loss:
        raise AssertionError(f"{run.name} is wrong: its first loss is {losses[0]:.4f}, in fp32 {problem.loss:.4f}")
    losses = [round(loss, 4) for loss in losses]
    return {"ms": round(statistics.median(ms[WARMUP:] or ms), 2), "mb": round(held / 1e6), "loss": losses}


def smooth(losses: Sequence[float]) -> np.ndarray:
    """Return the moving average of the losses over WINDOW steps."""
    window = min(WINDOW, len(losses))
    return np.convolve(losses, np.full(window, 1 / window), mode="valid")


def difference(one: dict, other: dict) -> float:
    """Return the largest difference between the smoothed losses of two rows, up to the end of the shorter one."""
    n = min(len(one["loss"]), len(other["loss"]))
    return float(np.abs(smooth(one["loss"][:n]) - smooth(other["loss"][:n])).max())


def measure(problem: TrainingProblem) -> tuple[list, list]:
    """Return the rows of all runs, and the distance between each pair that was trained to the end."""
    rows = []
    for run in RUNS:
        with harness.stopwatch(run.name):
            rows.append(train(run, problem))
            harness.say(line(rows[-1]))
    whole = [row for run, row in zip(RUNS, rows, strict=True) if run.whole]
    apart = [
        {"one": one["run"], "other": other["run"], "apart": round(difference(one, other), 4)}
        for one, other in itertools.combinations(whole, 2)
    ]
    for pair in apart:
        harness.say("{one} and {other}: smoothed curves at most {apart:.4f} apart".format(**pair))
    return rows, apart


def line(row: dict) -> str:
    if not row["ms"]:
        return f"{row['run']:18}  - {row['reason']}"
    first, last = row["loss"][0], smooth(row["loss"])[-1]
    speed = f"{row['ms']:9.2f} ms a step{row['mb']:8} MB"
    return f"{row['run']:18}{speed}{len(row['loss']):6} steps, loss {first:.4f} to {last:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.gpt", description=__doc__)
    parser.add_argument("--out", help="a JSON file to record the run in")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"steps of the runs to the end; default {STEPS}")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("The GPT is trained on a CUDA device; torch finds none. Recorded runs are in notebooks/data.")
    record = {**harness.environment(), "dtype": "bfloat16", **SIZES, "batch": BATCH, "lr": LR}
    harness.say(", ".join(f"{key} {value}" for key, value in record.items()))
    problem = TrainingProblem(TEXT.read_text(encoding="utf-8"), SIZES, BATCH, args.steps)
    weights = sum(W.numel() for W in problem.model(None).parameters())
    record |= {"vocab": problem.config.vocab, "weights": weights, "steps": args.steps}
    size: dict = {"d": SIZES["width"] // SIZES["heads"], "causal": True}
    size["shape"] = [BATCH, SIZES["heads"], SIZES["kv_heads"], SIZES["context"]]
    with records.Notes(harness.capability()) as notes:
        noted = {}
        notes.add(noted, size, {"forward": {}, "backward_dkv": {}, "backward_dq": {}})
        record["runs"], record["apart"] = measure(problem)
        notes.finish()
    record["runs"][0] |= noted
    if args.out:
        harness.write(args.out, record)


if __name__ == "__main__":
    main()
