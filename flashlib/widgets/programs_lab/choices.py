"""What can be chosen in ProgramsLab without a kernel of one's own, and what is accepted for each setting."""

from typing import Any

from flashlib.widgets.programs_lab.kernels import KERNELS
from flashlib.widgets.settings import is_whole, one_of, whole

DEFAULTS: dict[str, Any] = {
    **{"kernel": "vector", "N": 10, "BLOCK": 4, "stride_r": 6, "stride_c": 1},
    **{"mask": True, "transposed": False},
}
MOST = 16  # elements of a vector, or rows; also elements from one to the next
BLOCKS = [1, 2, 4, 8, 16]  # Triton takes powers of two
STOPS = {"BLOCK": BLOCKS, **{name: [*range(MOST + 1)] for name in ("N", "stride_r", "stride_c")}}


def checked(name: str, value: Any) -> Any:
    """Return a setting as Python's own kind; raise TypeError or ValueError if it is not accepted."""
    if name == "kernel":
        return one_of(name, value, KERNELS)
    if name in ("mask", "transposed"):
        if not isinstance(value, bool):
            raise TypeError(f"{name} is {value!r:.60}; pass True or False")
        return value
    if name == "BLOCK":
        if not is_whole(value) or value not in BLOCKS:
            raise ValueError(f"BLOCK is {value!r:.60}; pass 1, 2, 4, 8 or 16")
        return int(value)
    return whole(name, value, 0, MOST)
