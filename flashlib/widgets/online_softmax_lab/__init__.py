"""OnlineSoftmaxLab: the scan of online softmax, score by score."""

from flashlib.widgets.online_softmax_lab.online_softmax_lab import OnlineSoftmaxLab

__all__ = ["OnlineSoftmaxLab"]
