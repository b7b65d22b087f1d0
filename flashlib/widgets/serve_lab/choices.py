"""The settings of ServeLab, and the accepted values of each."""

from flashlib.widgets.serve_lab.runs import PAGE
from flashlib.widgets.serve_lab.scenarios import SCENARIOS, least_pages
from flashlib.widgets.settings import one_of, whole

COUNTS = {"batch": (1, 8), "chunk": (1, 64), "n_pages": (least_pages(PAGE), 64)}  # smallest and largest
STOPS = {  # of the sliders
    "batch": [1, 2, 3, 4, 5, 6, 8],
    "chunk": [2, 4, 8, 16, 32, 64],
    "n_pages": [COUNTS["n_pages"][0], 10, 12, 14, 16, 18, 20, 24, 32, 48],
}


def checked(name: str, value: object) -> object:
    """Return a setting as a built-in type; raise TypeError or ValueError if it is not accepted."""
    return one_of(name, value, SCENARIOS) if name == "scenario" else whole(name, value, *COUNTS[name])
