"""Which chapters nbval runs: without Triton (macOS, Windows) the kernel chapters are to be read only."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("triton") else ["09_*", "10_*"]
