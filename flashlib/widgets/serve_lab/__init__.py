"""ServeLab: see serving.py."""

from flashlib.widgets.serve_lab.serve_lab import ServeLab

__all__ = ["ServeLab"]
