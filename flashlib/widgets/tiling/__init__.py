"""TilingLab: see tiling.py."""

from flashlib.widgets.tiling.tiling import TilingLab

__all__ = ["TilingLab"]
