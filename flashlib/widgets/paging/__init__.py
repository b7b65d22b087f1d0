"""PagesLab: see paging.py."""

from flashlib.widgets.paging.paging import PagesLab

__all__ = ["PagesLab"]
