"""MaskLab: which tiles a mask hides, leaves whole or cuts, what each row sees, and what remains to be computed."""

from typing import Any

import numpy as np
import traitlets

from flashlib.masks import Mask
from flashlib.pictures.canvas import Picture
from flashlib.widgets.flash_player import FlashPlayer
from flashlib.widgets.lab import Lab
from flashlib.widgets.mask_lab import choices, figure, tile_counts, words
from flashlib.widgets.widget import script, style


def _sent(result, _):
    """Return a result in the form sent to the page."""
    return result | {"runs": tile_counts.packed(result["runs"])} if result else result


class MaskLab(Lab):
    """Show a mask over the scores of one head, (N_q, N_k), cut into tiles of B_r x B_c.

    mask: "causal", "window" (left, right), "prefix" (n), "documents" (lengths, a text or integers; the rest of N_k
    is one more document, what goes beyond N_k is cut off), "blocks" (block x block scores each, share percent of
    them seen), "line" (a line of Python), or one of `flashlib.masks`, whose kind is "given".
    also: a second mask, "causal", "window" or "documents"; a score is seen if both see it. d: the head dimension,
    for FLOPs and bytes. All can be set later, from Python or on the page; a value that is not accepted then
    changes nothing, and `refused` says why. `mask` is the mask that is shown, `result` holds everything that is
    shown, and `play()` plays it.
    """

    _esm = script("mask_lab/mask_lab.js")
    _css = style("mask_lab/mask_lab.css")

    kind = traitlets.Unicode().tag(sync=True)
    also = traitlets.Unicode().tag(sync=True)
    left = traitlets.Int(allow_none=True).tag(sync=True)
    right = traitlets.Int(allow_none=True).tag(sync=True)
    n = traitlets.Int().tag(sync=True)
    lengths = traitlets.Unicode().tag(sync=True)
    block = traitlets.Int().tag(sync=True)
    share = traitlets.Int().tag(sync=True)
    line = traitlets.Unicode().tag(sync=True)
    N_q = traitlets.Int().tag(sync=True)
    N_k = traitlets.Int().tag(sync=True)
    B_r = traitlets.Int().tag(sync=True)
    B_c = traitlets.Int().tag(sync=True)
    d = traitlets.Int().tag(sync=True)
    result = traitlets.Dict().tag(sync=True, to_json=_sent)
    _texts = tuple(choices.TEXTS)

    def __init__(
        self,
        mask=None,
        *,
        also="none",
        left=16,
        right=0,
        n=20,
        lengths=choices.TEXTS["lengths"],
        block=8,
        share=25,
        line="",
        N_q=64,
        N_k=64,
        B_r=8,
        B_c=8,
        d=64,
    ):
        self._given = mask if isinstance(mask, Mask) else None
        if mask is None:
            mask = "line" if line else "causal"
        setting = {"kind": "given" if self._given else mask, "also": also, "left": left, "right": right, "n": n}
        setting |= {"lengths": choices.as_text(lengths), "block": block, "share": share}
        setting |= {"line": line or choices.TEXTS["line"]}
        setting |= {"N_q": N_q, "N_k": N_k, "B_r": B_r, "B_c": B_c, "d": d}
        super().__init__(setting)

    @property
    def mask(self) -> Mask:
        """The mask that is shown."""
        return self._mask

    def play(self, d: int = 4, seed: int = 0, **setting: Any) -> FlashPlayer:
        """Return a FlashPlayer of this mask, with these tiles: random Q (N_q, d), K and V (N_k, d).

        Other arguments, such as order, are those of FlashPlayer.
        """
        rng, s = np.random.default_rng(seed), self.result["setting"]
        Q, K, V = (rng.normal(size=(s[name], d)) for name in ("N_q", "N_k", "N_k"))
        return FlashPlayer(Q, K, V, **{"B_r": s["B_r"], "B_c": s["B_c"], "mask": self.mask} | setting)

    def _checked(self, name, value):
        value = choices.checked(name, value)
        if value == "given" and not self._given:
            raise ValueError("No mask was given; pass one, e.g. MaskLab(masks.window(8, 0))")
        return value

    def _used(self, setting):
        return setting.keys() - choices.TEXTS.keys() | set(choices.used(setting["kind"], setting["also"]))

    def _computed(self, setting):
        sizes = {name: setting[name] for name in choices.SIZES}
        mask, code = choices.make(setting, self._given)
        result = tile_counts.compute(mask, **sizes)
        self._mask = mask
        kinds = [name for name in choices.KINDS if name != "given" or self._given]
        result |= {
            "setting": setting,
            "kinds_offered": kinds,
            "used": choices.used(setting["kind"], setting["also"]),
        }
        result |= {"code": code, "lengths": None, "words": [words.summary(result), words.loop(result)]}
        if "lengths" in result["used"]:
            result["lengths"] = choices.pack(choices.read_lengths(setting["lengths"]), setting["N_k"])
            result["words"].append(words.documents(result["lengths"], setting["N_k"]))
        if result["changes_scores"]:
            result["words"].append("It changes scores too: that hides none of them, and is not counted.")
        rows = words.rows(result, *(setting[name] for name in ("N_q", "N_k", "B_r", "B_c")))
        return result | {"rows": rows}

    def figure(self) -> Picture:
        return figure.draw(self.result)

    def _sizes(self):
        r = self.result
        sizes = ", ".join(f"{name}={r['setting'][name]}" for name in choices.SIZES)
        tiles, scores = r["tiles"], r["scores"]
        counts = f"{tiles['whole']} whole, {tiles['cut']} cut, {tiles['hidden']} hidden of {tiles['all']} tiles"
        seen = f"{scores['seen']} of {scores['computed']} computed scores seen"
        bounds = "bounds in closed form" if r["bounds"] else f"a table of {r['table']} bytes"
        return f"{r['code']}, {sizes}: {counts}, {seen}, {bounds}"
