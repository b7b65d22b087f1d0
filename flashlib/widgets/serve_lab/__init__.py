"""ServeLab: which requests decode, read their prompt or wait in each step of a server."""

from flashlib.widgets.serve_lab.serve_lab import ServeLab

__all__ = ["ServeLab"]
