"""`bench.mine(my_attention)`: a learner's kernel next to ours and others'.

On a GPU each is verified and timed, all in one run. Then, or without a GPU at once, all are compiled, and a table
shows the resources that a thread and a program of each need.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from flashlib.bench import learner_hopper
from flashlib.bench.kernel_table import KernelTable
from flashlib.bench.learner_resources import table, table_or_reason, yours_and_ours
from flashlib.checks.engine.verdict import Outcome, Verdict
from flashlib.learner import stubs

CAPABILITY = 90  # of the H100: kernels are compiled for it where there is no GPU
DS = 64, 128
N = 4096
ATTENTION_PEERS = "ours", "sdpa_flash", "sdpa_cudnn", "flex"
SHORT = {"bfloat16": "bf16", "float16": "fp16"}
ROWS, LENGTHS = 2**15, (1024, 4096, 16384)  # of the matrices whose rows become weights


class FunctionKind(NamedTuple):
    """A kind of function that `mine` accepts: its parameters, and how one is compiled and timed.

    compiled: takes the function and the capability of a GPU. timed: takes the function.
    """

    parameters: str
    compiled: Callable
    timed: Callable


def mine(answer: Callable) -> KernelTable | Verdict:
    """Return a table that compares your function with ours and others'; for attention on a GPU also show a figure.

    answer: my_attention(Q, K, V, causal), which returns O or (O, lse) for tensors of shape (B, H, N, d), or
    my_softmax(X), which returns the softmax of each row of a matrix, or
    my_variant(Q, K, V, table, SEEN, SCORE, B_R, B_C), attention as in Masks, or my_decode(Q, K, V, lengths,
    table, parts), a step of decoding over pages as in Pages. It must launch your own kernels. Attention in
    Gluon is compared with ours for Hopper, and timed on a Hopper GPU. On a GPU, a function whose error is more
    than twice that of a plain implementation in the same dtype is not timed; below the speeds is what the
    compiler made of the kernels. Without a GPU nothing is run, and they are compiled for an H100: `checks` tells
    you whether the function is right. If the compiler cannot do it, or Triton is missing, a sentence says so.
    Raises TypeError if it is not such a function.
    """
    in_gluon = learner_hopper.is_in_gluon(answer)
    kind = KINDS.get(_parameters(answer))
    if kind is None:
        accepted = " or ".join(kind.parameters for kind in KINDS.values())
        given = repr(answer) if not callable(answer) else f"a function of {_parameters(answer)} arguments"
        raise TypeError(f"{given} was passed; pass {accepted}, a function that launches your kernel")
    if stubs.is_unfinished(answer):
        return Verdict(answer.__name__, Outcome.NOT_SOLVED, "")
    try:
        from flashlib import kernels  # not before it is needed: Triton may not be installed
    except ImportError as error:
        return KernelTable(f"Nothing is compiled here: {error}")
    if in_gluon and kind is KINDS[4]:
        return _gluon(answer, kernels.INTERPRETED)
    if kernels.INTERPRETED:
        return table_or_reason(lambda: kind.compiled(answer, CAPABILITY))
    from flashlib.bench.common import harness
    from flashlib.kernels.compiler.occupancy import MULTIPROCESSORS

    speeds, here = kind.timed(answer), harness.capability()
    capability = here if here in MULTIPROCESSORS else CAPABILITY
    return replace(speeds, then=table_or_reason(lambda: kind.compiled(answer, capability)))


def _parameters(answer):
    """Return how many positional arguments a function takes, 0 if it is not a function."""
    try:
        given = inspect.signature(answer).parameters.values()
    except (TypeError, ValueError):
        return 0
    given = [p for p in given if p.kind is p.POSITIONAL_OR_KEYWORD]
    return sum(p.default is p.empty or p.name == "causal" for p in given)


def _gluon(answer, interpreted):
    """Return the table of a kernel in Gluon."""
    from flashlib.bench.common import harness

    resources = table_or_reason(
        lambda: table(learner_hopper.compiled(answer), "Causal attention in bf16", CAPABILITY)
    )
    if interpreted or harness.capability() != CAPABILITY:
        return resources
    speeds, environment = learner_hopper.timed(answer), harness.environment()
    peers = list(next(iter(speeds.values())))
    rows = [
        (f"{_words(size)}, N = {size.N}", *[speed[name] or "-" for name in peers], _ratio(speed, "hopper"))
        for size, speed in speeds.items()
    ]
    title = "TFLOP/s, bf16, {gpu}, torch {torch}, Triton {triton}, {date}; hopper is ours".format(**environment)
    return KernelTable(title, ("", *peers, "yours / hopper"), rows, then=resources)


def dtype_for(capability: int | str) -> str:
    """Return the dtype in which attention is compared on a GPU: before the A100 none computes in bf16."""
    return "float16" if isinstance(capability, int) and capability < 80 else "bfloat16"


def _attention_compiled(answer, capability):
    from flashlib.kernels.compiler import compiled, learner_kernels

    reports = []
    for d in DS:
        size = {"d": d, "dtype": dtype_for(capability), "causal": True, "capability": capability}
        ours = compiled.report(**size, sass=False)
        reports += yours_and_ours(f"d = {d}", learner_kernels.reports(answer, "attention", **size), ours)
    return table(reports, f"Causal attention in {SHORT[dtype_for(capability)]}", capability)


def _softmax_compiled(answer, capability):
    from flashlib.kernels.compiler import compiled, learner_kernels

    reports = []
    for length in LENGTHS:
        size = {"d": length, "dtype": "float32", "capability": capability}
        ours = compiled.report(kernel="softmax", **size, sass=False)
        reports += yours_and_ours(f"rows of {length}", learner_kernels.reports(answer, "softmax", **size), ours)
    return table(reports, "Softmax in fp32", capability)


def _variant_compiled(answer, capability):
    from flashlib.bench import learner_variants

    reports = []
    for name, yours, ours in learner_variants.reports(answer, capability):
        reports += yours_and_ours(name, yours, ours)
    return table(reports, f"Attention in bf16, d = {learner_variants.D}", capability)


def _variant_timed(answer):
    from flashlib.bench import learner_variants
    from flashlib.bench.common import harness

    peers, rows = learner_variants.PEERS, []
    for name, ms in learner_variants.times(answer):
        ratio = round(ms["yours"] / ms["ours"], 2) if "yours" in ms else "-"
        rows.append((name, *[round(ms[peer], 3) if peer in ms else "-" for peer in peers], ratio))
    title = "Milliseconds, bf16, d = {d}, N = {N}, {gpu}, torch {torch}, Triton {triton}, {date}"
    sizes = {"d": learner_variants.D, "N": learner_variants.N}
    return KernelTable(title.format(**sizes, **harness.environment()), ("", *peers, "yours / ours"), rows)


def _decoding_compiled(answer, capability):
    from flashlib.bench import learner_decoding

    reports = []
    for size, yours, ours in learner_decoding.reports(answer, capability):
        reports += yours_and_ours(size, yours, *ours)
    return table(reports, "A step of decoding in bf16", capability)


def _decoding_timed(answer):
    from flashlib.bench import learner_decoding
    from flashlib.bench.common import harness

    peers = learner_decoding.PEERS
    rows = []
    for size, us in learner_decoding.times(answer):
        ratio = round(us["yours"] / us["ours"], 2) if "yours" in us else "-"
        rows.append((size, *[us.get(name, "-") for name in peers], ratio))
    title = "Microseconds of a step, bf16, pages of {page}, {gpu}, torch {torch}, Triton {triton}, {date}"
    heads = "", *peers, "yours / ours"
    return KernelTable(title.format(page=learner_decoding.PAGE, **harness.environment()), heads, rows)


def _attention_timed(answer):
    import torch

    from flashlib.bench.common import harness
    from flashlib.bench.common.peers import PEERS
    from flashlib.bench.common.problem import Size, measure

    def yours(Q, K, V, causal):
        result = answer(Q, K, V, causal)
        return result[0] if isinstance(result, tuple | list) else result

    peers = {"yours": yours} | {name: PEERS[name] for name in ATTENTION_PEERS}
    torch.manual_seed(0)
    sizes = [Size(4, 2048 // d, 2048 // d, N, d, causal) for d in DS for causal in (False, True)]
    name = dtype_for(harness.capability())
    dtype = getattr(torch, name)
    speeds = {size: measure(size, peers, dtype=dtype, needed=("ours",))["tflops"] for size in sizes}
    environment = harness.environment() | {"N": N, "dtype": SHORT[name]}
    _draw(speeds, "Forward pass, N = {N}, {dtype}, {gpu}".format(**environment))
    rows = [
        (_words(size), *[speed[name] or "-" for name in peers], _ratio(speed)) for size, speed in speeds.items()
    ]
    title = "TFLOP/s, {dtype}, N = {N}, {gpu}, torch {torch}, Triton {triton}, {date}".format(**environment)
    return KernelTable(title, ("", *peers, "yours / ours"), rows)


def _words(size):
    return f"d = {size.d}, {'causal' if size.causal else 'no mask'}"


def _ratio(speed, other="ours"):
    return round(speed["yours"] / speed[other], 2) if speed["yours"] else "-"


def _draw(speeds, title):
    """Draw the speeds on the axes of Speed."""
    import matplotlib.pyplot as plt

    from flashlib.pictures.inks import BLUE, INK

    fig, axes = plt.subplots(2, 2, figsize=(9, 4.4), sharex=True, layout="constrained")
    for ax, (size, speed) in zip(axes.flat, speeds.items(), strict=True):
        values = [speed[name] or 0 for name in speed]
        bars = ax.barh(list(speed), values, color=[BLUE] + [INK] * (len(speed) - 1))
        ax.bar_label(bars, [f"{x:.0f}" if x else "none" for x in values], padding=3, fontsize=8)
        ax.invert_yaxis()
        ax.margins(x=0.15)  # for the numbers
        ax.set_title(_words(size))
        ax.tick_params(labelsize=8)
    for ax in axes[1]:
        ax.set_xlabel("TFLOP/s")
    fig.suptitle(f"{title}: yours in blue")
    plt.show()


def _softmax_timed(answer):
    import torch

    from flashlib.bench.common import harness
    from flashlib.kernels import softmax

    peers = {
        "yours": answer,
        "ours": softmax.softmax,
        "torch": partial(torch.softmax, dim=-1),
        "copy": torch.clone,
    }
    rows = []
    for length in LENGTHS:
        X = torch.randn(ROWS, length, device="cuda")
        runs = {name: partial(peer, X) for name, peer in peers.items()}
        exact, plain = X[:64].double().softmax(dim=-1), X[:64].softmax(dim=-1)

        def check():
            # Triton's exp is 2^(x log2(e)), which rounds x once more than torch's exp.
            harness.verify(f"softmax of rows of {length}", answer(X)[:64], exact, plain, roundings=2)  # noqa: B023

        if not harness.works("yours", check, needed=False):
            del runs["yours"]
        ms = harness.side_by_side(runs)
        moved = 2 * X.numel() * X.element_size()
        speeds = [round(moved / ms[name] / 1e6) if name in ms else "-" for name in peers]
        rows.append((f"rows of {length}", *speeds))
    environment = harness.environment()
    title = "GB/s, one reading and one writing counted, fp32, {gpu}, torch {torch}, Triton {triton}, {date}"
    return KernelTable(title.format(**environment), ("", *peers), rows)


KINDS = {
    4: FunctionKind("my_attention(Q, K, V, causal)", _attention_compiled, _attention_timed),
    1: FunctionKind("my_softmax(X)", _softmax_compiled, _softmax_timed),
    8: FunctionKind("my_variant(Q, K, V, table, SEEN, SCORE, B_R, B_C)", _variant_compiled, _variant_timed),
    6: FunctionKind("my_decode(Q, K, V, lengths, table, parts)", _decoding_compiled, _decoding_timed),
}
