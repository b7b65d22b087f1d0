"""OnlineSoftmaxLab: see online.py."""

from flashlib.widgets.online_softmax_lab.online_softmax_lab import OnlineSoftmaxLab

__all__ = ["OnlineSoftmaxLab"]
