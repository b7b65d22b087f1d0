"""Tests of adapters use the kernels, interpreted or compiled, as those of the kernels do."""

from tests.kernels.conftest import collect_ignore_glob, device, poisoned

__all__ = ["collect_ignore_glob", "device", "poisoned"]
