"""CompilerLab: choose a kernel, a tile and a GPU, and see what the compiler makes of them."""

from flashlib.widgets.compiler_lab.compiler_lab import CompilerLab

__all__ = ["CompilerLab"]
