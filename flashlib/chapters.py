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


NEEDS = {
    "triton": Need(
        lambda: find_spec("triton") is not None,
        "Triton is not installed (there are packages for Linux only): read it with its stored results",
    ),
}


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

    def obstacles(self) -> list[str]:
        """Return why it cannot run on this machine, a sentence for each need; [] if it can."""
        return [NEEDS[need].otherwise for need in self.needs if not NEEDS[need].is_here()]


CHAPTERS = (
    Chapter(
        "00_start_here", "Start here",
        "how to use the course, routes through it, glossary, what your machine can do",
        widgets=("FlashPlayer",),
    ),
    Chapter(
        "01_naive_softmax", "Naive softmax",
        "scores to weights, and where `exp` overflows and underflows in each number format",
        widgets=("OverflowLab",),
    ),
    Chapter(
        "02_safe_softmax", "Safe softmax",
        "subtract the maximum: the same function, what that prevents, and what it costs",
        widgets=("OverflowLab",),
    ),
    Chapter(
        "03_online_softmax", "Online softmax",
        "a row whose scores come one by one: rescaling; two parts of a row merge",
        widgets=("MergeTree", "OnlineSoftmaxLab"),
    ),
    Chapter("04_attention", "Attention", "Q, K, V, S, P, O, heads, masks; what it costs to store S and P"),
    Chapter(
        "05_one_pass", "One pass",
        "softmax and the product with V in one pass: `m`, `l` and `O_acc`, by hand; the player",
        widgets=("FlashPlayer",),
    ),
    Chapter(
        "06_tiling", "Tiling",
        "the whole algorithm, in both loop orders, with blocks of any size; causal skipping, ragged tails, bytes",
        widgets=("ComparePlayers", "TilingLab"),
    ),
    Chapter(
        "07_counting_bytes", "Counting bytes",
        "what is moved: metered, by formula, by the counters of a GPU; roofline; your CPU",
    ),
    Chapter(
        "08_backward", "Backward",
        "the gradients, and P computed again from one number per row; two passes over tiles; bytes kept",
        widgets=("BackwardPlayer",),
    ),
    Chapter(
        "09_triton_first_steps", "First steps in Triton",
        "programs, blocks, masks: a row softmax",
        needs=("triton",),
    ),
    Chapter(
        "10_triton_flash", "FlashAttention in Triton",
        "the kernel, piece by piece, each beside its NumPy line; then one of your own, beside ours",
        needs=("triton",),
    ),
    Chapter(
        "11_triton_backward", "The backward kernels",
        "two kernels for three gradients; attention as an operation of PyTorch; a small GPT",
        needs=("triton",),
    ),
    Chapter(
        "12_speed", "Speed",
        "from standard attention to a fast kernel in measured steps; what the compiler makes of each",
        needs=("triton",),
        widgets=("CompilerLab",),
    ),
    Chapter(
        "13_hopper", "Hopper",
        "which warp does what: copies by one warp, two groups in turns, the next product under this softmax",
        needs=("triton",),
        widgets=("CompilerLab", "PipelinePlayer"),
    ),
    Chapter(
        "14_variants", "Variants",
        "windows, documents in a pack, capped scores, sinks, grouped heads, dropout: any mask, in the same loop",
        needs=("triton",),
        widgets=("FlashPlayer", "MaskLab"),
    ),
    Chapter(
        "15_inference", "Inference",
        "a cache of keys and values: one query, keys split over programs, pages that sequences share, fewer bytes",
        needs=("triton",),
        widgets=("PagesLab", "ServeLab", "SplitLab"),
    ),
)  # fmt: skip


def chapter(slug) -> Chapter:
    """Return the chapter of a slug; raise KeyError, which lists all chapters, if it is not registered."""
    for found in CHAPTERS:
        if found.slug == slug:
            return found
    raise KeyError(f"no chapter {slug!r} in flashlib/chapters.py; there are {', '.join(c.slug for c in CHAPTERS)}")
