"""OnlineSoftmaxLab: see online.py."""

from flashlib.widgets.online.online import OnlineSoftmaxLab

__all__ = ["OnlineSoftmaxLab"]
