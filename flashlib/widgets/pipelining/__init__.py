"""PipelinePlayer: see pipelining.py."""

from flashlib.widgets.pipelining.pipelining import PipelinePlayer

__all__ = ["PipelinePlayer"]
