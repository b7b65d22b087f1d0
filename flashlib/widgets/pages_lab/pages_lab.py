"""PagesLab: requests begin, grow, fork and end, and an allocator gives them pages, played step by step."""

import inspect

import traitlets

from flashlib.cache.pages import Pages
from flashlib.language.phrases import and_list
from flashlib.pictures.canvas import Picture
from flashlib.widgets.lab import Lab
from flashlib.widgets.pages_lab import figure, scenarios, words
from flashlib.widgets.pages_lab.exercise import as_played
from flashlib.widgets.pages_lab.play import Play
from flashlib.widgets.settings import is_whole, one_of, whole
from flashlib.widgets.widget import script, style

NEEDED = "start", "append", "free", "table", "lengths"  # needed to play anything
N_PAGES = 4, 32
STOPS = {"page": [1, 2, 4, 8, 16], "n_pages": [4, 6, 8, 10, 12, 16, 20, 24, 28, 32]}


class PagesLab(Lab):
    """Play how an allocator of `n_pages` pages of `page` rows serves requests, one operation at a time.

    scenario: "requests come and go", "a shared prompt", "fork and copy on write", "out of pages" or "speculation";
    default: the first that the allocator has the methods for. page: 1, 2, 4, 8 or 16. n_pages: 4 to 32.
    allocator: a class that is called with n_pages and page and has the methods of `flashlib.cache.Pages`, the
    default: start, append and free, and table and lengths, which report its state. fork and drop may be missing,
    and `start` may take no tokens; scenarios that need them are then off. The class of the exercise `pages` is
    accepted too, see `exercise.as_played`. If an allocator has used, kept, free_pages, waste or check, they are
    compared with its tables; pages in its kept_by_age are shown as kept. The first operation after which something
    is wrong reports it, and the play ends there. scenario, page and n_pages can be set later, from Python or on
    the page; a value that is not accepted changes nothing, and `refused` says why. `result` holds what is shown.
    """

    _esm = script("pages_lab/pages_lab.js")
    _css = style("pages_lab/pages_lab.css")

    scenario = traitlets.Unicode().tag(sync=True)
    page = traitlets.Int().tag(sync=True)
    n_pages = traitlets.Int().tag(sync=True)
    result = traitlets.Dict().tag(sync=True)

    def __init__(self, scenario=None, *, page=4, n_pages=16, allocator=Pages):
        super().__init__({"scenario": scenario, "page": page, "n_pages": n_pages}, allocator=allocator)

    def _take(self, allocator):
        self._allocator = allocator = _checked_allocator(as_played(allocator))
        self._off = {name: _missing(allocator, name) for name in scenarios.SCENARIOS}

    def _checked(self, name, value):
        if name == "n_pages":
            return whole(name, value, *N_PAGES)
        if name == "page":
            if not is_whole(value) or value not in STOPS["page"]:
                raise ValueError(f"page is {value!r:.60}; pass 1, 2, 4, 8 or 16")
            return int(value)
        if value is None:
            return next(name for name, why in self._off.items() if not why)
        if self._off[one_of(name, value, self._off)]:
            raise ValueError(f"{value!r} cannot be played: {self._off[value]}")
        return value

    def _computed(self, setting):
        scenario, page, n_pages = setting.values()
        ops = scenarios.script(scenario, n_pages, page)
        frames = Play(self._allocator, n_pages, page, _takes_tokens(self._allocator)).run(ops)
        return {
            **{"setting": setting, "stops": STOPS, "off": self._off, "allocator": self._allocator.__name__},
            **{"names": scenarios.names(ops), "longest": scenarios.longest(ops), "frames": frames},
            "opens": figure.instructive_frame(frames),
        }

    def figure(self, at: int | None = None) -> Picture:
        """Return a picture of frame `at`; default: the most instructive one, see `figure.instructive_frame`."""
        return figure.draw(self.result, at)

    def _sizes(self):
        r = self.result
        frames, setting = r["frames"], r["setting"]
        own = "" if self._allocator is Pages else f", allocator={r['allocator']}"
        head = f"{setting['scenario']!r}, page={setting['page']}, n_pages={setting['n_pages']}{own}"
        if frames[-1]["kind"] == "fault":
            return f"{head}: wrong at step {len(frames) - 1}, {frames[-1]['call']}: {frames[-1]['words']}"
        rows, waste, reserved, reserved_waste = words.totals(frames)
        used = max(frame["counts"]["used"] for frame in frames)
        shares = f"{words.share(waste, rows)} of rows without a token, {words.share(reserved_waste, reserved)}"
        return f"{head}: {len(frames) - 1} steps, at most {used} pages used, {shares} if reserved contiguously"


def _checked_allocator(allocator):
    """Return an allocator's class; raise TypeError if it cannot be played."""
    if not isinstance(allocator, type):
        what = type(allocator).__name__
        raise TypeError(f"allocator is a {what}; pass the class itself, e.g. PagesLab(allocator=MyPages)")
    missing = [name for name in NEEDED if not callable(getattr(allocator, name, None))]
    if missing:
        raise TypeError(
            f"{allocator.__name__} has no {and_list(missing)}; an allocator needs start, append and free, and "
            "table and lengths, by which its state is read, as flashlib.cache.pages.Pages has them"
        )
    return allocator


def _missing(allocator, scenario) -> str:
    """Return why a scenario cannot be played with an allocator, or ""."""
    missing = sorted(name for name in scenarios.needs(scenario) if not callable(getattr(allocator, name, None)))
    if missing:
        return f"{allocator.__name__} has no {and_list(missing)}"
    if scenarios.gives_tokens(scenario) and not _takes_tokens(allocator):
        return f"the start of {allocator.__name__} takes no tokens"
    return ""


def _takes_tokens(allocator) -> bool:
    """Return whether `start` can be given a prompt."""
    parameters = list(inspect.signature(allocator.start).parameters.values())
    if isinstance(inspect.getattr_static(allocator, "start"), staticmethod):
        return bool(parameters)
    return len(parameters) > 1
