"""Without Triton there are no kernels, one of the engines: macOS and Windows leave these tests out."""

from tests.kernels.conftest import collect_ignore_glob

__all__ = ["collect_ignore_glob"]
