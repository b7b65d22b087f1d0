"""The chapters of the course, registered once: their titles, their topics, and what they need to run.

A new chapter is a notebook, an entry here and, for its exercises and questions, a folder in `checks/chapters`. The
workspace, the tests, the heads of chapters, the tables of the README and of chapter 00, and `checks.progress()`
use this list.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple


class Need(NamedTuple):
    """Something that a chapter may need: whether this machine has it, and a sentence to show if it does not."""

    is_here: Callable[[], bool]
    otherwise: str


def _weights_are_here():
    from flashlib.interop import weights  # imported late, because it tells transformers to stay offline

    return weights.are_here()


NEEDS = {
    "triton": Need(
        lambda: find_spec("triton") is not None,
        "Triton is not installed (there are packages for Linux only): read it with its stored results",
    ),
    "transformers": Need(
        lambda: find_spec("transformers") is not None,
        "transformers is not installed: run make models, or read it with its stored results",
    ),
    "weights": Need(
        _weights_are_here,
        "the weights of a small model are not here: run make models, or read it with its stored results",
    ),
}


PARTS = {  # {title: the numbers of its chapters}; a chapter that none of them lists is in the last
    "FlashAttention": range(9),
    "On the GPU": (*range(9, 14), 18),
    "In use": range(14, 18),
}


class Route(NamedTuple):
    """A route through some chapters, without their sections marked "(optional)" or "(not on the route)".

    end: what you have at its end, in Markdown.
    """

    name: str
    numbers: tuple[str, ...]
    end: str


KERNEL = "a causal FlashAttention kernel that you wrote"
FROM_ZERO = Route("the route from zero", ("01", "02", "03", "04", "05", "06", "09", "10"), KERNEL)
KNOWN = Route("the route, if you know softmax and attention", ("03", "05", "06", "09", "10"), KERNEL)
ROUTES = (
    Route("ten minutes", ("00",), "an idea of it: the player and a slider"),
    Route("an evening", ("03", "05", "06"), "the whole algorithm, in NumPy"),
    KNOWN,
    FROM_ZERO,
)


class Chapter(NamedTuple):
    """A chapter. slug: the name of its notebook. idea: one line for tables, in Markdown.

    builds_on: numbers of chapters. needs: keys of NEEDS. widgets: the classes that it shows.
    """

    slug: str
    title: str
    idea: str
    builds_on: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    widgets: tuple[str, ...] = ()

    @property
    def number(self) -> str:
        return self.slug[:2]

    @property
    def name(self) -> str:
        """The slug without its number, which is the name of its folder in `flashlib.checks.chapters`."""
        return self.slug[3:]

    @property
    def part(self) -> str:
        """The title of the part of the course that it belongs to."""
        return next((title for title, numbers in PARTS.items() if int(self.number) in numbers), list(PARTS)[-1])

    @property
    def on_route(self) -> bool:
        return self.number in FROM_ZERO.numbers

    def obstacles(self) -> list[str]:
        """Return why it cannot run on this machine, as a sentence for each missing need; [] if it can."""
        return [NEEDS[need].otherwise for need in self.needs if not NEEDS[need].is_here()]


CHAPTERS = (
    Chapter(
        "00_start_here", "Start here",
        "how the course works, routes, glossary, your machine",
        widgets=("FlashPlayer",),
    ),
    Chapter(
        "01_naive_softmax", "Naive softmax",
        "scores to weights; where `exp` overflows and underflows",
        widgets=("OverflowLab",),
    ),
    Chapter(
        "02_safe_softmax", "Safe softmax",
        "subtract the maximum: what it prevents, and its cost",
        builds_on=("01",),
        widgets=("OverflowLab",),
    ),
    Chapter(
        "03_online_softmax", "Online softmax",
        "scores that come one by one; two parts of a row merge",
        builds_on=("02",),
        widgets=("MergeTree", "OnlineSoftmaxLab"),
    ),
    Chapter(
        "04_attention", "Attention",
        "Q, K, V, heads, masks; the cost of storing S and P",
        builds_on=("02",),
    ),
    Chapter(
        "05_one_pass", "One pass: FlashAttention by hand",
        "`m`, `l` and `O_acc`, by hand; the player",
        builds_on=("03", "04"),
        widgets=("FlashPlayer",),
    ),
    Chapter(
        "06_tiling", "Tiling",
        "the whole algorithm, in both loop orders",
        builds_on=("02", "04", "05"),
        widgets=("ComparePlayers", "TilingLab"),
    ),
    Chapter(
        "07_counting_bytes", "Counting bytes",
        "bytes metered, by formula, by a GPU's counters; roofline",
        builds_on=("04", "06"),
    ),
    Chapter(
        "08_backward", "Backward",
        "the gradients; P computed again from a number per row",
        builds_on=("04", "05", "06", "07"),
        widgets=("BackwardPlayer",),
    ),
    Chapter(
        "09_triton_first_steps", "First steps in Triton",
        "programs, blocks, masks: a row softmax",
        builds_on=("03",),
        needs=("triton",),
    ),
    Chapter(
        "10_triton_flash", "FlashAttention in Triton",
        "the kernel beside its NumPy lines; then your own",
        builds_on=("05", "06", "09"),
        needs=("triton",),
    ),
    Chapter(
        "11_triton_backward", "The backward kernels",
        "two kernels for three gradients; a small GPT",
        builds_on=("08", "10"),
        needs=("triton",),
    ),
    Chapter(
        "12_speed", "Speed",
        "to a fast kernel in measured steps",
        builds_on=("07", "10"),
        needs=("triton",),
        widgets=("CompilerLab",),
    ),
    Chapter(
        "13_hopper", "Hopper",
        "warps with roles: one copies, others take turns",
        builds_on=("10", "12"),
        needs=("triton",),
        widgets=("CompilerLab", "PipelinePlayer"),
    ),
    Chapter(
        "14_variants", "Masks and variants",
        "windows, documents, caps, sinks, grouped heads, dropout",
        builds_on=("03", "06", "08", "09", "10"),
        needs=("triton",),
        widgets=("FlashPlayer", "MaskLab"),
    ),
    Chapter(
        "15_inference", "Inference",
        "a cache, keys split over programs, shared pages, fp8",
        builds_on=("03", "07", "10", "11", "14"),
        needs=("triton",),
        widgets=("PagesLab", "ServeLab", "SplitLab"),
    ),
    Chapter(
        "16_rings", "Rings",
        "attention over many GPUs: keys travel round",
        builds_on=("03", "05", "07", "08"),
        widgets=("RingPlayer",),
    ),
    Chapter(
        "17_real_models", "Real models",
        "attention where others call it",
        builds_on=("06", "14", "15"),
        needs=("transformers", "weights"),
        widgets=("FlashPlayer",),
    ),
    Chapter(
        "18_eight_bits", "Eight bits",
        "scales, rotations, sums that lose bits",
        builds_on=("02", "05", "15"),
        needs=("triton",),
        widgets=("EightBitsLab",),
    ),
)  # fmt: skip


def chapter(slug: str) -> Chapter:
    """Return the chapter with this slug; raise a KeyError that lists all chapters if it is not registered."""
    for found in CHAPTERS:
        if found.slug == slug:
            return found
    raise KeyError(f"no chapter {slug!r} in flashlib/chapters.py; there are {', '.join(c.slug for c in CHAPTERS)}")
