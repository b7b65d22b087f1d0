"""The chapters of the course, registered once: their titles, their topics, and what they need to run.

A new chapter is a notebook, an entry here and, for its exercises and questions, a folder in `checks/chapters`. The
workspace, the tests, the heads of chapters, the tables of the README and of Start here, and `checks.progress()`
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


PARTS = {  # {title: the number of its first chapter}
    "The route": 0,
    "Bytes": 8,
    "Training": 10,
    "In use": 12,
    "The machine": 18,
}
FURTHER = "Further pages"  # the notebooks without a number, after the parts


class Route(NamedTuple):
    """A route through some chapters, without their sections under "More (optional)".

    end: what you have at its end, in Markdown.
    """

    name: str
    numbers: tuple[str, ...]
    end: str


KERNEL = "a causal FlashAttention kernel that you wrote"
FROM_ZERO = Route("the route from zero", ("01", "02", "03", "04", "05", "06", "07"), KERNEL)
KNOWN = Route("the route, if you know softmax and attention", ("03", "04", "05", "06", "07"), KERNEL)
ROUTES = (
    Route("ten minutes", ("00",), "the idea, on real numbers"),
    Route("an evening, if you know softmax and attention", ("03", "04", "05"), "the whole algorithm, in NumPy"),
    KNOWN,
    FROM_ZERO,
)


class Chapter(NamedTuple):
    """A chapter. slug: the name of its notebook. idea: one line for tables, in Markdown.

    builds_on: names of chapters. needs: keys of NEEDS; more_needs: those of its optional section alone.
    widgets: the classes that it shows.
    """

    slug: str
    title: str
    idea: str
    builds_on: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    widgets: tuple[str, ...] = ()
    more_needs: tuple[str, ...] = ()

    @property
    def number(self) -> str:
        """Its two digits, "" for a notebook without a number."""
        return self.slug[:2] if self.slug[:2].isdigit() else ""

    @property
    def name(self) -> str:
        """The slug without its number, which is the name of its folder in `flashlib.checks.chapters`."""
        return self.slug[3:] if self.number else self.slug

    @property
    def part(self) -> str:
        """The title of the part of the course that it belongs to; FURTHER for a notebook without a number."""
        return (
            [title for title, first in PARTS.items() if first <= int(self.number)][-1] if self.number else FURTHER
        )

    @property
    def heading(self) -> str:
        """Its number and title, or its title alone."""
        return f"{self.number} · {self.title}" if self.number else self.title

    @property
    def short_title(self) -> str:
        """Its title without what follows a comma or a colon."""
        return self.title.partition(",")[0].partition(":")[0]

    @property
    def on_route(self) -> bool:
        return self.number in FROM_ZERO.numbers

    def all_before(self) -> set[str]:
        """Return the names of all chapters that it builds on, directly or through others."""
        return {*self.builds_on}.union(*(named(name).all_before() for name in self.builds_on))

    def obstacles(self, more: bool = False) -> list[str]:
        """Return why it cannot run on this machine, as a sentence for each missing need; [] if it can.

        more: whether its optional section is to run too.
        """
        needs = self.needs + self.more_needs if more else self.needs
        return [NEEDS[need].otherwise for need in needs if not NEEDS[need].is_here()]


CHAPTERS = (
    Chapter(
        "00_start_here", "Start here",
        "FlashAttention at work on six words; the routes",
        widgets=("FlashPlayer",),
    ),
    Chapter(
        "01_softmax", "Softmax, from naive to safe",
        "scores to weights; where `exp` overflows, and what prevents it",
        widgets=("OverflowLab",),
    ),
    Chapter(
        "02_attention", "Attention",
        "Q, K, V, masks; the products are cheap, the trips are not",
        builds_on=("softmax",),
        widgets=("TripsPlayer",),
    ),
    Chapter(
        "03_online_softmax", "Online softmax",
        "scores that come one by one; two parts of a row merge",
        builds_on=("softmax", "attention"),
        widgets=("MergeTree", "OnlineSoftmaxLab"),
    ),
    Chapter(
        "04_one_pass", "One pass: FlashAttention by hand",
        "`m`, `l` and `O_acc`, by hand; the player",
        builds_on=("attention", "online_softmax"),
        widgets=("FlashPlayer",),
    ),
    Chapter(
        "05_tiling", "Tiling",
        "the whole algorithm, tile by tile",
        builds_on=("attention", "online_softmax", "one_pass"),
        widgets=("TilingLab",),
    ),
    Chapter(
        "06_triton_first_steps", "First steps in Triton",
        "programs, blocks, masks: your first kernels",
        builds_on=("online_softmax",),
        needs=("triton",),
        widgets=("ProgramsLab",),
    ),
    Chapter(
        "07_triton_flash", "FlashAttention in Triton",
        "its pieces next to their NumPy lines; then your own",
        builds_on=("one_pass", "tiling", "triton_first_steps"),
        needs=("triton",),
        widgets=("FlashPlayer",),
    ),
    Chapter(
        "08_counting_bytes", "Counting bytes",
        "bytes metered, and by formula; both loop orders",
        builds_on=("attention", "tiling"),
        widgets=("ComparePlayers", "TilingLab"),
    ),
    Chapter(
        "09_roofline", "Roofline",
        "operations for each byte; what a GPU's counters say",
        builds_on=("counting_bytes",),
    ),
    Chapter(
        "10_backward", "Backward",
        "the gradients; P computed again from a number per row",
        builds_on=("attention", "one_pass", "tiling", "counting_bytes", "roofline"),
        widgets=("BackwardPlayer",),
    ),
    Chapter(
        "11_triton_backward", "The backward kernels",
        "two kernels for three gradients; a small GPT",
        builds_on=("triton_flash", "backward"),
        needs=("triton",),
    ),
    Chapter(
        "12_masks", "Masks",
        "windows, documents, tables: hidden, whole and cut tiles",
        builds_on=("online_softmax", "tiling", "triton_flash"),
        needs=("triton",),
        widgets=("FlashPlayer", "MaskLab"),
    ),
    Chapter(
        "13_scores", "Scores",
        "ALiBi, caps, sinks: change first, hide last, merge after",
        builds_on=("online_softmax", "triton_flash", "backward", "masks"),
        needs=("triton",),
    ),
    Chapter(
        "14_one_query", "One query",
        "one query: its bytes, split and merged",
        builds_on=("online_softmax", "triton_flash", "counting_bytes", "roofline"),
        needs=("triton",),
        widgets=("SplitLab",),
    ),
    Chapter(
        "15_pages", "Pages",
        "a cache in pages: who owns what",
        builds_on=("one_query",),
        needs=("triton",),
        widgets=("PagesLab", "ServeLab"),
    ),
    Chapter(
        "16_rings", "Rings",
        "attention over many GPUs: keys go around the ring",
        builds_on=("online_softmax", "one_pass", "counting_bytes", "backward"),
        widgets=("RingPlayer",),
    ),
    Chapter(
        "17_real_models", "Real models",
        "attention where others call it",
        builds_on=("tiling", "masks", "scores", "one_query", "pages"),
        needs=("transformers", "weights"),
        widgets=("FlashPlayer",),
    ),
    Chapter(
        "18_speed", "Speed",
        "to a fast kernel in measured steps",
        builds_on=("triton_flash", "roofline"),
        needs=("triton",),
        widgets=("CompilerLab",),
    ),
    Chapter(
        "19_roles", "Roles",
        "warps with roles: who waits for whom",
        builds_on=("triton_flash",),
        widgets=("PipelinePlayer",),
    ),
    Chapter(
        "20_hopper", "A Hopper kernel",
        "the roles in Gluon: layouts, products, registers",
        builds_on=("triton_flash", "roles", "speed"),
        needs=("triton",),
        widgets=("CompilerLab", "PipelinePlayer"),
    ),
    Chapter(
        "23_eight_bits", "Eight bits",
        "scales, rotations, sums that lose bits",
        builds_on=("softmax", "tiling"),
        widgets=("EightBitsLab",),
        more_needs=("triton",),
    ),
)  # fmt: skip

UNNUMBERED = (  # notebooks that are no chapters: pages of the site, in no route
    Chapter("glossary", "Glossary", "the words of the field"),
    Chapter(
        "claims",
        "Claims, judged",
        "what is said about FlashAttention, and what the records say",
        builds_on=("pages", "rings", "real_models", "speed", "hopper", "eight_bits"),
    ),
    Chapter(
        "hopper_backward",
        "The backward for Hopper",
        "five products in one pass; who adds dQ",
        builds_on=("triton_backward", "roles", "hopper"),
        needs=("triton",),
        widgets=("PipelinePlayer",),
    ),
)
NOTEBOOKS = (*CHAPTERS, *UNNUMBERED)


def chapter(slug: str) -> Chapter:
    """Return the chapter with this slug; raise a KeyError that lists all chapters if it is not registered."""
    for found in NOTEBOOKS:
        if found.slug == slug:
            return found
    raise KeyError(f"no chapter {slug!r} in flashlib/chapters.py; there are {', '.join(c.slug for c in CHAPTERS)}")


def named(name: str) -> Chapter:
    """Return the chapter with this name, which is its slug without the number; raise a KeyError that lists all."""
    for found in NOTEBOOKS:
        if found.name == name:
            return found
    raise KeyError(
        f"no chapter {name!r} in flashlib/chapters.py; there are {', '.join(c.name for c in NOTEBOOKS)}"
    )
