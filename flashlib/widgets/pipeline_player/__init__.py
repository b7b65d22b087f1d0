"""PipelinePlayer: see pipelining.py."""

from flashlib.widgets.pipeline_player.pipeline_player import PipelinePlayer

__all__ = ["PipelinePlayer"]
