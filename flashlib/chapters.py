"""The chapters of the course, registered once: what each is called, how long it takes, and what it needs to run.

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
    """A chapter. slug: the name of its notebook. minutes: exercises included. idea: in a table, Markdown.

    needs: keys of NEEDS. widgets: the classes that it shows.
    """

    slug: str
    title: str
    minutes: int
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
        "00_start_here", "Start here", 15,
        "how to use the course, routes through it, glossary, what your machine can do",
        widgets=("FlashPlayer",),
    ),
    Chapter(
        "01_naive_softmax", "Naive softmax", 55,
        "scores to weights, and where `exp` overflows and underflows in each number format",
        widgets=("OverflowLab",),
    ),
    Chapter(
        "02_safe_softmax", "Safe softmax", 65,
        "subtract the maximum: the same function, and no exponential overflows; three passes counted",
        widgets=("OverflowLab",),
    ),
    Chapter(
        "03_online_softmax", "Online softmax", 95,
        "maximum and sum in one pass, by rescaling; two parts of a row merge",
        widgets=("MergeTree", "OnlineSoftmaxLab"),
    ),
    Chapter("04_attention", "Attention", 85, "Q, K, V, S, P, O, heads, masks; what it costs to store S and P"),
    Chapter(
        "05_one_pass", "One pass", 100,
        "softmax and the product with V in one pass: `m`, `l` and `O_acc`, by hand; the player",
        widgets=("FlashPlayer",),
    ),
    Chapter(
        "06_tiling", "Tiling", 175,
        "the whole algorithm, in both loop orders, with blocks of any size; causal skipping, ragged tails, bytes",
        widgets=("ComparePlayers", "TilingLab"),
    ),
    Chapter(
        "07_counting_bytes", "Counting bytes", 120,
        "what is moved: metered, by formula, by the counters of a GPU; roofline; your CPU",
    ),
    Chapter(
        "08_backward", "Backward", 150,
        "the gradients, and P made again from one number per row; two passes over tiles; what is kept, in bytes",
        widgets=("BackwardPlayer",),
    ),
    Chapter(
        "09_triton_first_steps", "First steps in Triton", 120,
        "programs, blocks, masks: a row softmax",
        needs=("triton",),
    ),
    Chapter(
        "10_triton_flash", "FlashAttention in Triton", 190,
        "the kernel, piece by piece, each beside its NumPy line",
        needs=("triton",),
    ),
    Chapter(
        "11_triton_backward", "The backward kernels", 180,
        "two kernels for three gradients; attention as an operation of PyTorch; a small GPT",
        needs=("triton",),
    ),
    Chapter(
        "12_speed", "Speed", 130,
        "from standard attention to a fast kernel in measured steps; what the compiler makes of each",
        needs=("triton",),
        widgets=("CompilerLab",),
    ),
)  # fmt: skip


def chapter(slug) -> Chapter:
    """Return the chapter of a slug; raise KeyError, with all that there are, if it is not registered."""
    for found in CHAPTERS:
        if found.slug == slug:
            return found
    raise KeyError(f"no chapter {slug!r} in flashlib/chapters.py; there are {', '.join(c.slug for c in CHAPTERS)}")
