"""ServeLab: who decodes, who reads and who waits in each step of a server."""

from flashlib.widgets.serve_lab.serve_lab import ServeLab

__all__ = ["ServeLab"]
