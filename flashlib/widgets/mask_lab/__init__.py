"""MaskLab: which tiles a mask hides, and what remains to be computed."""

from flashlib.widgets.mask_lab.mask_lab import MaskLab

__all__ = ["MaskLab"]
