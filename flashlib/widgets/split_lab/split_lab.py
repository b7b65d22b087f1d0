"""SplitLab: the keys of one query split over programs, the merge of their States, a busy GPU, and the time."""

import traitlets

from flashlib.gpus import GPUS
from flashlib.language.phrases import counted
from flashlib.pictures.canvas import Picture
from flashlib.pictures.number_text import number
from flashlib.softmax import State
from flashlib.types import Attention
from flashlib.widgets.lab import Lab
from flashlib.widgets.split_lab import choices, figure, model, part_states, words
from flashlib.widgets.widget import script, style

OF_THE_CALL = "N_k", "B", "H_k", "group", "d", "gpu"


class SplitLab(Lab):
    """Show decoding with split keys: the State that each program leaves, their merge, and the time it saves.

    N_k: keys of a sequence, 1 to 65536. parts: into about how many parts they are split, as by `kernels.decode`, 1
    to 256. order: of merging the States, "row" or "tree". These three determine the States, which are those of one
    query with d = 4, in fp64.
    B: sequences, H_k: heads of K and V, group: query heads that share one, d: the head dimension, 16 to 128, gpu:
    a name of `choices.GPUS`, from the A100 on. These determine how busy the GPU is, and the time, which comes from
    a model. record: measured times, a list of (parts, microseconds) of the call that is shown first, drawn with
    its curve. All but record can be set later, from Python or on the page; a value that is not accepted then
    changes nothing, and `refused` says why. `result` holds everything that is shown.
    """

    _esm = script("split_lab/split_lab.js")
    _css = style("split_lab/split_lab.css")

    N_k = traitlets.Int().tag(sync=True)
    parts = traitlets.Int().tag(sync=True)
    order = traitlets.Unicode().tag(sync=True)
    B = traitlets.Int().tag(sync=True)
    H_k = traitlets.Int().tag(sync=True)
    group = traitlets.Int().tag(sync=True)
    d = traitlets.Int().tag(sync=True)
    gpu = traitlets.Unicode().tag(sync=True)
    result = traitlets.Dict().tag(sync=True)

    def __init__(
        self, N_k=8192, parts=8, *, order="row", B=1, H_k=8, group=4, d=128, gpu="H200", record=None
    ):  # fmt: skip
        setting = {"N_k": N_k, "parts": parts, "order": order}
        setting |= {"B": B, "H_k": H_k, "group": group, "d": d, "gpu": gpu}
        super().__init__(setting, record=record)

    def _take(self, record):
        self._record = choices.checked_record(record)

    _checked = staticmethod(choices.checked)

    @property
    def states(self) -> list[State]:
        """The State of each part of the keys."""
        return list(part_states.states(self.N_k, self.parts))

    @property
    def merged(self) -> Attention:
        """O and lse of the States, merged in the order that is shown."""
        return part_states.finished(part_states.merged(self.states, self.order).states[-1])

    @staticmethod
    def _call(setting):
        return model.DecodeCall(**{name: setting[name] for name in OF_THE_CALL})

    def _computed(self, setting):
        N_k, ranges, call = setting["N_k"], model.split(setting["N_k"], setting["parts"]), self._call(setting)
        nodes = part_states.merged(part_states.states(N_k, setting["parts"]), setting["order"])
        n, curve = len(ranges), call.curve()
        off = part_states.difference(part_states.finished(nodes.states[-1]), part_states.in_one_go(N_k))
        tiles = model.tiles_of(N_k)
        fits = call == self._call(self._first)
        return {
            "setting": setting,
            **{"n": n, "D": part_states.D, "bins": len(part_states.outline(N_k))},
            **{"ranges": ranges, "tile": model.B_C, "gpus": choices.GPUS, "stops": choices.stops(tiles)},
            "nodes": {"children": nodes.children, "spans": nodes.spans, "levels": nodes.levels},
            "difference": off,
            "chip": self._chip(call, n),
            "times": self._times(call, n, curve),
            "record": [[model.actual_parts(tiles, parts), time] for parts, time in self._record] if fits else [],
            "other_record": bool(self._record) and not fits,
            "words": [words.parts(setting, ranges), words.busy(call, n), words.time(call, n, curve)],
            "merges": words.merges(setting, call, n, nodes.levels[-1]),
            "equal": words.equal(off),
            "model": words.explain(call),
            "buffer": part_states.pack(nodes, N_k),
        }

    @staticmethod
    def _chip(call, n):
        waves, last = call.waves(n)
        return {
            **{"sms": GPUS[call.gpu].sms, "at_a_time": call.at_a_time, "places": call.places},
            **{"programs": call.programs(n), "waves": waves, "last": last},
        }

    @staticmethod
    def _times(call, n, curve):
        """Return microseconds: for the chosen number of parts piece by piece, and the total for every number."""
        now = call.time(n)
        return {
            "now": {name: 1e6 * seconds for name, seconds in now._asdict().items()} | {"total": 1e6 * now.total},
            "curve": [[parts, 1e6 * time.total] for parts, time in curve],
            "least": 1e6 * call.bytes / GPUS[call.gpu].bandwidth,
            "best": words.marked(call, n, curve),
            "default": call.default,
        }

    def figure(self) -> Picture:
        return figure.draw(self.result)

    def _sizes(self):
        r = self.result
        setting = ", ".join(f"{name}={value!r}" for name, value in r["setting"].items())
        O, lse = self.merged
        chip = r["chip"]
        made = f"{counted(r['n'], 'part', 'parts')}, lse = {number(lse)}, O = ({', '.join(map(number, O))})"
        waves = counted(chip["waves"], "wave", "waves")
        busy = f"{chip['programs']} programs in {waves}, {number(r['times']['now']['total'])} µs by the model"
        return f"{setting}: {made}; {busy}"
