"""TilingLab: what a block size costs in bytes moved and in SRAM."""

from flashlib.widgets.tiling_lab.tiling_lab import TilingLab

__all__ = ["TilingLab"]
