"""RingPlayer: ranks in a ring, whose keys and values travel round it while tiles are computed."""

import numpy as np
import traitlets

from flashlib import ring
from flashlib.pictures.canvas import Picture
from flashlib.ring.layouts import LAYOUTS
from flashlib.widgets.lab import Lab
from flashlib.widgets.ring_player import choices, figure, runs, words
from flashlib.widgets.ring_player import record as of
from flashlib.widgets.widget import script, style


class RingPlayer(Lab):
    """Play attention over ranks: who computes which scores when, the travelling keys, and the merging of rows.

    ranks: 2 to 8. N: tokens, 8 to 64. layout: which rank holds which tokens, "contiguous", "striped" or "zigzag".
    mask: "causal", "none", "window" (of N / 4) or "documents" (three). way: "ring" or "all-gather".
    tile: the time of a tile of S, 4 rows by 4 keys, 0.1 to 10. token: the time to copy K and V of a token to
    another rank, 0 to 10.
    program: the learner's own rank, a function of a `ring.Rank` that yields commands, see `ring.events`. The way
    is then "own", and its run is played, up to the point where it goes wrong.
    All but program can be set later, from Python or on the page; a value that is not accepted then changes
    nothing, and `refused` says why. Everything shown comes from a `ring.RingRun` of one head with d = 4 in fp64;
    `result` holds it.
    """

    _esm = script("ring_player/ring_player.js")
    _css = style("ring_player/ring_player.css")

    ranks = traitlets.Int().tag(sync=True)
    N = traitlets.Int().tag(sync=True)
    cut = traitlets.Unicode().tag(sync=True)  # the layout: `layout` is the widget's own
    mask = traitlets.Unicode().tag(sync=True)
    way = traitlets.Unicode().tag(sync=True)
    tile = traitlets.Float().tag(sync=True)
    token = traitlets.Float().tag(sync=True)
    result = traitlets.Dict().tag(sync=True)

    def __init__(
        self, ranks=4, N=64, *, layout="zigzag", mask="causal", way=None, tile=1, token=0.4, program=None
    ):  # fmt: skip
        way = way or (choices.WAYS[0] if program is None else choices.OWN)
        setting = {"ranks": ranks, "N": N, "cut": layout, "mask": mask, "way": way, "tile": tile, "token": token}
        super().__init__(setting, program=program)

    def _take(self, program):
        choices.check_program(program)
        self._program = program

    def _checked(self, name, value):
        return choices.checked(name, value, own=self._program is not None)

    @property
    def run(self) -> ring.RingRun:
        """The RingRun that is shown."""
        return runs.run(self._setting, self._program)

    def _computed(self, setting):
        run = runs.run(setting, self._program)
        found, N, fault = of.record(run, setting["tile"]), setting["N"], run.fault
        sums, played = of.sums(found), of.times(found)
        off = _difference(run, setting)
        return {
            **{"setting": setting, "stops": choices.STOPS, "ways": list(choices.ways(self._program is not None))},
            **{"D": runs.D, "tokens": [[i for run_of in rows for i in run_of] for rows in run.plan.rows]},
            "seen": of.seen(setting["mask"], N),
            **{name: getattr(found, name) for name in ("computes", "copies", "held", "asked", "idle", "end")},
            **{"times": played, "opens": of.opens(found, played, fault is not None)},
            "moments": words.at_moments(found, fault),
            "goes_on": words.between_moments(found),
            "sums": sums,
            "fault": fault and _fault(fault),
            **{"difference": off if off is not None and np.isfinite(off) else None, "wrong": words.is_wrong(off)},
            "words": [words.summary(sums, fault), words.why(setting, found), words.equal(off)],
            "compare": [self._compared(setting, layout, found, sums, fault) for layout in LAYOUTS],
            "buffer": of.pack(run, N),
        }

    def _compared(self, setting, layout, found, sums, fault):
        """Return the bars and sums of the same setting with a different layout."""
        if layout != setting["cut"]:
            other = setting | {"cut": layout}
            own = setting["way"] == choices.OWN
            run = runs.run(other, self._program) if own else runs.counted(other)
            found, fault = of.record(run, setting["tile"]), run.fault
            sums = of.sums(found)
        return {
            **{"layout": layout, "about": words.LAYOUTS[layout], "end": found.end, "sums": sums},
            "computes": [[one[1:4] for one in own] for own in found.computes],
            "fault": fault.kind.value if fault else "",
        }

    def figure(self) -> Picture:
        return figure.draw(self.result)

    def _sizes(self):
        r = self.result
        shown = {("layout" if name == "cut" else name): value for name, value in r["setting"].items()}
        setting = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        wrong = f"{r['words'][2]} " if r["wrong"] else ""  # otherwise digits that differ between machines
        return f"{setting}: {r['words'][0]} {wrong}{words.totals(r['compare'])}"


def _difference(run, setting):
    """Return the largest difference of O and lse from one process; None if there is no result."""
    if run.result is None:
        return None
    pairs = zip(run.result, runs.exact(setting["N"], setting["mask"]), strict=True)
    return float(np.max([abs(ours - theirs).max() for ours, theirs in pairs]))  # NaN if there is a NaN


def _fault(fault):
    rank = of.NOBODY if fault.rank is None else fault.rank
    return {
        "kind": fault.kind.value,
        "said": words.fault(fault),
        "rank": rank,
        "waits": [list(p) for p in fault.waits],
    }
