"""FlashPlayer: the steps of FlashAttention, tile by tile, with the real numbers."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import traitlets

from flashlib import masks, recorded_head, tiled
from flashlib.learner.stubs import name_of
from flashlib.pictures.canvas import Picture
from flashlib.pictures.steps import telling_step
from flashlib.widgets.flash_player import figure, labels, learner
from flashlib.widgets.flash_player.frames import record
from flashlib.widgets.flash_player.kernel import LearnersKernel, one_head
from flashlib.widgets.flash_player.source import lines_of, lines_of_kernel
from flashlib.widgets.flash_player.tiled_widget import TiledWidget
from flashlib.widgets.widget import script, style

SETTING = ("B_r", "B_c", "causal", "order")
PANELS = "less", "all"
SOURCES = {"fa1": tiled.fa1_steps, "fa2": tiled.fa2_steps}


class FlashPlayer(TiledWidget):
    """Play FlashAttention on Q (N_q, d) and K, V (N_k, d): each step is one Step of `tiled.steps`.

    Without Q, K and V they are random, (N, d), normal, float64, the same for the same seed. B_r and B_c are
    clamped to N_q and N_k. capacity: bytes of SRAM to compare a tile with; default: the next power of two above
    what the first tile needs. mask: one of flashlib.masks. my_steps: see `from_steps`; my_kernel: see
    `from_kernel`. opens_at: the step to open at, at its end, or 0 for the beginning. words: labels, one for each
    row of K; the last N_q also label the rows of Q. panels: "less" for a first look, which shows only S, the state
    of the rows, O and the sentence, and opens at the beginning; a button switches between "less" and "all".
    Setting `B_r`, `B_c`, `order`, `causal`, and `N`, `d`, `seed` of random inputs later, from Python or on the
    page, computes the steps again; sizes are then clamped to their range. If `tiled.steps` refuses the arguments,
    or there is too much to draw or play, a sentence appears in place of the player.
    """

    _esm = script("flash_player/flash_player.js")
    _css = style("flash_player/places.css", "flash_player/stepped.css", "flash_player/flash_player.css")

    _asked_panels = "all"

    order = traitlets.Enum(["fa1", "fa2"], "fa2").tag(sync=True)
    panels = traitlets.Enum(PANELS).tag(sync=True)

    def __init__(
        self,
        Q=None,
        K=None,
        V=None,
        *,
        B_r=4,
        B_c=2,
        causal=False,
        mask=None,
        order="fa2",
        scale=None,
        N=8,
        d=4,
        seed=0,
        capacity=None,
        my_steps=None,
        my_kernel=None,
        opens_at=None,
        words=None,
        panels="all",
    ):
        if panels == "less" and my_steps is None and my_kernel is None and opens_at is None:
            opens_at = 0
        self._my_steps, self._my_kernel = my_steps, my_kernel
        self._opens_at = self._pictured = opens_at
        self._given = words, panels
        setting = {"B_r": B_r, "B_c": B_c, "causal": causal, "order": order}
        super().__init__((Q, K, V), N=N, d=d, seed=seed, scale=scale, capacity=capacity, mask=mask, **setting)

    @classmethod
    def from_sentence(cls, **setting: Any) -> "FlashPlayer":
        """Play one head of a real language model on the six words of `recorded_head`; as there, it is causal.

        The arguments are those of FlashPlayer.
        """
        Q, K, V, words = recorded_head.load()
        return cls(Q, K, V, **{"words": words, "B_r": 3, "causal": True, **setting})

    @classmethod
    def from_steps(
        cls,
        my_steps: Callable,
        Q: np.ndarray | None = None,
        K: np.ndarray | None = None,
        V: np.ndarray | None = None,
        **setting: Any,
    ) -> "FlashPlayer":
        """Play a learner's own generator of steps, with the true values next to theirs where they differ.

        my_steps(Q, K, V, ...) is called with those of B_r, B_c, causal, order, scale and mask, if there is one,
        that are among its parameters. It yields Steps, which need only i, j, m, l and O_acc. The other arguments
        are those of FlashPlayer.
        """
        return cls(Q, K, V, my_steps=my_steps, **setting)

    @classmethod
    def from_loop(
        cls, loop: Callable, Q: np.ndarray, K: np.ndarray, V: np.ndarray, **setting: Any
    ) -> "FlashPlayer":
        """Play loop(Q, K, V, O, B_r, B_c, causal, scale), a generator that also fills O; see `from_steps`.

        With a mask it is loop(Q, K, V, O, B_r, B_c, mask, scale), with a `masks.Tiles` that includes causal.
        """

        def my_steps(Q, K, V, B_r, B_c, causal, scale, mask=None):
            if mask is not None:
                causal = masks.resolve(mask, causal, len(Q), len(K))
            return loop(Q, K, V, np.full(Q.shape, np.nan), B_r, B_c, causal, scale)

        my_steps.__signature__ = inspect.signature(my_steps)  # type: ignore[attr-defined]
        functools.update_wrapper(my_steps, loop)  # the page shows the loop's name and lines
        return cls(Q, K, V, my_steps=my_steps, **setting)

    @classmethod
    def from_kernel(
        cls,
        my_attention: Callable,
        Q: Any = None,
        K: Any = None,
        V: Any = None,
        causal: bool = False,
        *,
        m: str | None = None,
        l: str | None = None,
        O_acc: str | None = None,
        N: int = 80,
        d: int = 16,
        **setting: Any,
    ) -> "FlashPlayer":
        """Play a learner's own Triton kernel: m, l and O_acc after each turn of its loop, with the truth beside.

        my_attention(Q, K, V, causal) launches the kernel on tensors (B, H, N, d) and returns O, or O and lse. It
        runs in Triton's interpreter, in a process of its own, on one head in fp32: of Q, K and V, arrays or
        tensors of shape (N, d) or (B, H, N, d), the first one. Block sizes are the kernel's. m, l, O_acc: the
        names of its variables; not needed where their values tell. setting: seed, capacity, opens_at, words or
        panels, which is "less" if not given.

        It says whether the kernel is right on these numbers; whether it is right, its check decides.
        """
        if unknown := setting.keys() - {"seed", "capacity", "opens_at", "words", "panels"}:
            raise TypeError(f"from_kernel takes no {', '.join(sorted(unknown))}: the kernel has its own")
        kernel = LearnersKernel(my_attention, m=m, l=l, O_acc=O_acc)
        Q, K, V = (one_head(X) for X in (Q, K, V))
        blocks: Any = {"B_r": 16, "B_c": 16}  # until it has run
        return cls(Q, K, V, my_kernel=kernel, causal=causal, N=N, d=d, **{"panels": "less", **blocks, **setting})

    def figure(self, at: int | None = None, row: int | None = None) -> Picture:
        """Return a picture of step `at`: 0 .. T - 1, or T for the end.

        Default: a learner's first wrong step, else `opens_at`, else one that rescales.
        """
        if self.problem:
            raise ValueError(self.problem)
        recording = self._recording
        if at is None:
            at = self._picture_of(recording.steps)
        O = recording.O_at(at)
        drawn = {"changed": self.frames["changed"], "words": self._words, "less": self.panels == "less"}
        Q, K, V = self._inputs
        return figure.draw(Q, K, V, recording.steps, at, O=O, row=row, true=recording.true, **drawn)

    def _picture_of(self, steps):
        """Return the step that the picture of the widget shows."""
        first = (self.frames["learner"] or {}).get("first")
        if first:
            return first[0]
        asked = self._pictured
        return asked if asked is not None and asked < len(steps) else telling_step(steps)

    @traitlets.default("panels")
    def _first_panels(self):
        return self._asked_panels

    def _take(self, inputs):
        super()._take(inputs)
        words, panels = self._given
        self._words = labels.checked(words, self._inputs)
        if panels not in PANELS:
            raise ValueError(f'panels is {panels!r}; accepted are "less" and "all"')
        self._asked_panels = panels

    def _sizes(self):
        f = self.frames
        sizes = ", ".join(f"{name}={f[name]!r}" for name in ("N_q", "N_k", "d", "B_r", "B_c", "order", "causal"))
        sizes += self._mask_name()
        if self._words:
            sizes += f", words={' '.join(self._words)!r:.60}"
        steps = f"{sizes}: {len(f['steps'])} steps of {f['T_r']} x {f['T_c']} tiles"
        if not f["learner"]:
            return steps
        if f["learner"]["first"] is None:
            return f"{steps}, {self._right()}"
        k, name, row = f["learner"]["first"]
        return f"{steps}, wrong from step {k + 1} on, in {name} of row {row}"

    def _right(self):
        """Return what `repr` says of a learner's steps that are all right."""
        if not self._my_kernel:
            return "right at each"
        found = self.frames["learner"]
        wrong = [f"{name} wrong from row {found[name][1]} on" for name in ("O", "lse") if found[name]]
        also = wrong or found["remark"] or found["note"]
        return ", ".join(["right at each", *wrong]) if also else "right on these numbers"

    def _frames(self, **setting):
        run = {**setting, "scale": self._scale, "mask": self._mask}
        if self._my_kernel:
            return self._frames_of_kernel(**setting)
        if self._my_steps is None:
            controls, source = SETTING, SOURCES[setting["order"]]
            self._recording = record(*self._inputs, **run)
        else:
            controls, source = learner.accepted(self._my_steps), self._my_steps
            self._recording = learner.record(source, *self._inputs, **run)
        return {
            **self._played(self._recording, **setting),
            **self._shown(controls, **setting),
            "lines": lines_of(source, causal=setting["causal"]),
            "learner": self._verdict(source),
            "opens_at": self._opened(len(self._recording.steps)),
            "words": self._words,
        }

    def _verdict(self, my_steps):
        """Return the verdict on a learner's steps, with the name of the function, or None without one."""
        return {"name": name_of(my_steps), **learner.verdict(self._recording)} if self._my_steps else None

    def _frames_of_kernel(self, causal, **setting):
        self._inputs = tuple(X.astype(np.float32) for X in self._inputs)
        played = self._my_kernel.play(*self._inputs, causal)
        setting |= {"B_r": played.B_r, "B_c": played.B_c, "causal": causal, "order": "fa2"}
        if problem := self._too_much(played.B_r, played.B_c):
            raise ValueError(problem)
        self._recording = played.recording
        shown = self._shown(self._my_kernel.settings, **setting)
        return {
            **self._played(self._recording, **setting),
            **shown,
            "controls": [name for name in shown["controls"] if name != "d"],  # of which kernels take few
            "lines": lines_of_kernel(played.source, causal=causal),
            "learner": {"name": self._my_kernel.name, **played.verdict},
            "opens_at": self._opened(len(self._recording.steps)),
            "words": self._words,
        }
