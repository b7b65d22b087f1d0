"""The chapters of the course, registered once: what each is called, what it is about, and what it needs to run.

A new chapter is a notebook, a line here and, for its exercises and questions, a folder in `checks/chapters`. The
workspace, the tests, the tables of the README and of chapter 00, and `checks.progress()` read this.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple


class Need(NamedTuple):
    """What a chapter may need: whether this machine has it, and a sentence for those whose machine has not."""

    is_here: Callable[[], bool]
    otherwise: str


def _weights_are_here():
    from flashlib.interop import weights  # only where it is asked: it tells transformers to stay offline

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


PARTS = {"Start": "00", "Softmax": "01", "Attention": "04", "Kernels": "09", "Use": "14"}  # {title: first chapter}


class Chapter(NamedTuple):
    """A chapter. slug: the name of its notebook. idea: in a table, Markdown.

    needs: keys of NEEDS. widgets: the classes that it shows.
    """

    slug: str
    title: str
    idea: str
    needs: tuple[str, ...] = ()
    widgets: tuple[str, ...] = ()

    @property
    def number(self) -> str:
        return self.slug[:2]

    @property
    def name(self) -> str:
        """The slug without its number: the name of its folder in `flashlib.checks.chapters`."""
        return self.slug[3:]

    @property
    def part(self) -> str:
        """The title of the part of the course that it is in."""
        return [title for title, first in PARTS.items() if first <= self.number][-1]

    def obstacles(self) -> list[str]:
        """Return why it cannot run on this machine, a sentence for each need; [] if it can."""
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
        widgets=("OverflowLab",),
    ),
    Chapter(
        "03_online_softmax", "Online softmax",
        "scores that come one by one; two parts of a row merge",
        widgets=("MergeTree", "OnlineSoftmaxLab"),
    ),
    Chapter("04_attention", "Attention", "Q, K, V, heads, masks; the cost of storing S and P"),
    Chapter(
        "05_one_pass", "One pass",
        "`m`, `l` and `O_acc`, by hand; the player",
        widgets=("FlashPlayer",),
    ),
    Chapter(
        "06_tiling", "Tiling",
        "the whole algorithm, in both loop orders",
        widgets=("ComparePlayers", "TilingLab"),
    ),
    Chapter(
        "07_counting_bytes", "Counting bytes",
        "bytes metered, by formula, by a GPU's counters; roofline",
    ),
    Chapter(
        "08_backward", "Backward",
        "the gradients; P computed again from a number per row",
        widgets=("BackwardPlayer",),
    ),
    Chapter(
        "09_triton_first_steps", "First steps in Triton",
        "programs, blocks, masks: a row softmax",
        needs=("triton",),
    ),
    Chapter(
        "10_triton_flash", "FlashAttention in Triton",
        "the kernel beside its NumPy lines; then your own",
        needs=("triton",),
    ),
    Chapter(
        "11_triton_backward", "The backward kernels",
        "two kernels for three gradients; a small GPT",
        needs=("triton",),
    ),
    Chapter(
        "12_speed", "Speed",
        "to a fast kernel in measured steps",
        needs=("triton",),
        widgets=("CompilerLab",),
    ),
    Chapter(
        "13_hopper", "Hopper",
        "warps with roles: one copies, others take turns",
        needs=("triton",),
        widgets=("CompilerLab", "PipelinePlayer"),
    ),
    Chapter(
        "14_variants", "Variants",
        "windows, documents, caps, sinks, grouped heads, dropout",
        needs=("triton",),
        widgets=("FlashPlayer", "MaskLab"),
    ),
    Chapter(
        "15_inference", "Inference",
        "a cache, keys split over programs, shared pages, fp8",
        needs=("triton",),
        widgets=("PagesLab", "ServeLab", "SplitLab"),
    ),
    Chapter(
        "16_rings", "Rings",
        "attention over many GPUs: keys travel round",
        widgets=("RingPlayer",),
    ),
    Chapter(
        "17_real_models", "Real models",
        "attention where others call it",
        needs=("transformers", "weights"),
        widgets=("FlashPlayer",),
    ),
    Chapter(
        "18_eight_bits", "Eight bits",
        "scales, rotations, sums that lose bits",
        needs=("triton",),
        widgets=("EightBitsLab",),
    ),
)  # fmt: skip


def chapter(slug: str) -> Chapter:
    """Return the chapter of a slug; raise KeyError, which lists all chapters, if it is not registered."""
    for found in CHAPTERS:
        if found.slug == slug:
            return found
    raise KeyError(f"no chapter {slug!r} in flashlib/chapters.py; there are {', '.join(c.slug for c in CHAPTERS)}")
