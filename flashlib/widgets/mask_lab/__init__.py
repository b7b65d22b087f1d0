"""MaskLab: which tiles a mask hides, and what is left to compute."""

from flashlib.widgets.mask_lab.mask_lab import MaskLab

__all__ = ["MaskLab"]
