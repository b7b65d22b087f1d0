"""Compile what the benchmarks time, in many processes at once, so that they find it compiled.

    python -m tools.precompile [variants]

With `variants` it compiles what `flashlib.bench.variants` times, otherwise what the other benchmarks time. It
changes no result: Triton and torch store compiled code on disk. Run before them, it saves minutes of waiting on a
machine with many cores. What fails here is reported and does no harm.
"""

import argparse
import functools
import itertools
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import torch

from flashlib.bench import backward_ladder, cases, gpt, ladder, short_sequences, variants
from flashlib.bench.common import harness, sizes
from flashlib.bench.common.peers import BACKWARD_PEERS, PEERS
from flashlib.bench.common.problem import Size, tensors
from flashlib.lm.model import LM, Config
from flashlib.lm.training import train

TIME_LIMIT = 240  # seconds
SIZES = [
    *sizes.SIZES,
    *sizes.MORE,
    Size(1, short_sequences.CALL_HEADS, short_sequences.CALL_HEADS, 512, 128, False),
]


def work() -> list:
    """Return functions that each run something once, the longest first."""
    by_flex = [functools.partial(run, ("flex",), size) for run in (gradients, output) for size in SIZES]
    by_ours = [functools.partial(gradients, ("ours", "ours_fused"), size) for size in SIZES]
    by_ours += [functools.partial(output, ("ours",), size) for size in SIZES]
    of_ladder = [
        sizes.usual_size(d, causal, ladder.N) for d, causal in itertools.product(ladder.DS, (False, True))
    ]
    rungs = [functools.partial(rung, *found) for found in itertools.product(of_ladder, choices())]
    passes = [functools.partial(one_pass, *found) for found in itertools.product(of_ladder, choices_back())]
    return [functools.partial(compiled_gpt), *by_flex, *passes, *by_ours, *rungs]


def of_variants() -> list:
    """Return such functions for what `variants` times."""
    passes = itertools.product((True, False), variants.sizes(quick=False), cases.CASES)
    return [functools.partial(variant, case, size, gradients) for gradients, size, case in passes]


def variant(case, size, gradients):
    problem = variants.VariantProblem(case, size, gradients)
    for attention in (problem.flex, problem.ours, problem.plain):
        problem.run(attention)()


WORK = {"tables": work, "variants": of_variants}


def output(names, size):
    for name in names:
        PEERS[name](*tensors(size), size.causal)


def gradients(names, size):
    *leaves, dO = tensors(size, 4)
    leaves = [X.requires_grad_() for X in leaves]
    for name in names:
        torch.autograd.grad(BACKWARD_PEERS[name](*leaves, size.causal), leaves, dO)


def compiled_gpt():
    context = gpt.SIZES["context"]
    tokens = torch.arange(2 * context, device="cuda") % 62
    compiled = gpt.compiled(LM(Config(vocab=62, **gpt.SIZES), gpt.ours).to("cuda"))
    for _ in train(compiled, tokens, 1, batch=gpt.BATCH):
        pass


def choices() -> list:
    """Return each kernel of the ladder with each of the options that may be tried."""
    small, tiles = ladder.SMALL, [ladder.SMALL | tile for tile in ladder.TILES]
    ahead = [tile | {"num_stages": n} for tile in tiles for n in ladder.STAGES]
    fewer = [small | {"B_c": c, "num_stages": n} for c, n in ((64, 3), (128, 2))]
    large = [options for d in ladder.DS for options in ladder.large(SimpleNamespace(d=d), [])]
    by_kernel = {
        "r3_flash": [small],
        "r4_exp2": [small],
        "r5_causal": [small, *tiles, *ahead, ladder.PIPELINED],
        "r8_descriptors": [*ahead, *fewer, *large],
        "without_common_wait": large,
        **{rung.name: [ladder.PIPELINED] for rung in ladder.WITHOUT},
    }
    return [(name, options) for name, tried in by_kernel.items() for options in tried]


def rung(size, choice):
    name, options = choice
    runs = {rung.name: rung.run for rung in (*ladder.RUNGS, ladder.TWO_WAITS, *ladder.WITHOUT)}
    runs[name](*tensors(size), size.causal, **options)


def choices_back() -> list:
    """Return the same for the backward pass: rungs with their options, and ideas, which choose their own."""
    tiles = [tile | {"num_stages": n} for tile in backward_ladder.TILES for n in (1, *backward_ladder.STAGES)]
    by_rung = {"b2_adds": [ladder.SMALL], "b4_tiles": tiles, "b6_descriptors": tiles}
    rungs = [(rung, options) for rung in backward_ladder.RUNGS for options in by_rung.get(rung.name, [])]
    ideas = [(idea, {}) for idea in (*backward_ladder.DKV, *backward_ladder.DQ)]
    return rungs + ideas


def one_pass(size, choice):
    rung, options = choice
    *QKV, dO = tensors(size, 4)
    lse = torch.zeros(dO.shape[:-1], device=dO.device)
    rung.run(SimpleNamespace(tensors=QKV, O=dO, dO=dO, lse=lse, causal=size.causal), **options)()


def share(what, k, n):
    """Run every n-th piece of work from number k on."""
    for piece in WORK[what]()[k::n]:
        try:
            piece()
        except Exception as error:  # whatever a compiler, a driver or a library raises
            harness.say(f"{piece.func.__name__}{piece.args}: {harness.reason(error)}")


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.precompile", description=__doc__)
    parser.add_argument("what", nargs="?", choices=WORK, default="tables")
    parser.add_argument("--share", nargs=2, type=int, metavar=("K", "N"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("torch finds no CUDA device to compile for.")
    if args.share:
        share(args.what, *args.share)
        return
    n = max(1, min(len(os.sched_getaffinity(0)) - 1, 15))
    env = os.environ | {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
    command = [sys.executable, "-m", "tools.precompile", args.what, "--share"]
    with harness.stopwatch(f"{len(WORK[args.what]())} pieces in {n} processes"):
        others = [subprocess.Popen([*command, str(k), str(n)], env=env) for k in range(n)]
        end = time.monotonic() + TIME_LIMIT
        try:
            for other in others:
                other.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            harness.say(f"some kernels were not compiled within {TIME_LIMIT} seconds")
        finally:
            for other in others:
                other.kill()


if __name__ == "__main__":
    main()
