"""What nbval runs: the chapters that can run on this machine; the solved ones are run when they are made."""

from flashlib.chapters import NOTEBOOKS

collect_ignore_glob = ["solutions/*", *(f"{c.slug}.ipynb" for c in NOTEBOOKS if c.obstacles())]
