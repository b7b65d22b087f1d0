"""MaskLab: see masking.py."""

from flashlib.widgets.mask_lab.mask_lab import MaskLab

__all__ = ["MaskLab"]
