"""PagesLab: see paging.py."""

from flashlib.widgets.pages_lab.pages_lab import PagesLab

__all__ = ["PagesLab"]
