"""MaskLab: see masking.py."""

from flashlib.widgets.masking.masking import MaskLab

__all__ = ["MaskLab"]
