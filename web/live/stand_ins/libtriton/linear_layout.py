"""Layouts of tiles over threads, which only the compiler has: Triton imports the name."""


class LinearLayout:
    """No layout."""
