"""PagesLab: what an allocator of pages does, operation by operation."""

from flashlib.widgets.pages_lab.pages_lab import PagesLab

__all__ = ["PagesLab"]
