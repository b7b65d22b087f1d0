"""TilingLab: see tiling.py."""

from flashlib.widgets.tiling_lab.tiling_lab import TilingLab

__all__ = ["TilingLab"]
