"""ProgramsLab: which elements each program of a kernel loads, masks and stores."""

from flashlib.widgets.programs_lab.programs_lab import ProgramsLab

__all__ = ["ProgramsLab"]
