"""SplitLab: see splitting.py."""

from flashlib.widgets.splitting.splitting import SplitLab

__all__ = ["SplitLab"]
