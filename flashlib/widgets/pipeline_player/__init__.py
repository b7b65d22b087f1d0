"""PipelinePlayer: what each unit and each role of a pipeline does, or how the pipeline goes wrong."""

from flashlib.widgets.pipeline_player.pipeline_player import PipelinePlayer

__all__ = ["PipelinePlayer"]
