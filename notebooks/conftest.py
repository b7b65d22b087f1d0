"""Which chapters nbval runs: without Triton (macOS, Windows) the kernel chapters are to be read only."""

from importlib.util import find_spec

KERNEL_CHAPTERS = ["09_*", "10_*"]
collect_ignore_glob = (
    [] if find_spec("triton") else [*KERNEL_CHAPTERS, *(f"solutions/{c}" for c in KERNEL_CHAPTERS)]
)
