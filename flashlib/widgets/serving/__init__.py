"""ServeLab: see serving.py."""

from flashlib.widgets.serving.serving import ServeLab

__all__ = ["ServeLab"]
