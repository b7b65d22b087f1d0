"""Units of an answer: which of them fit the one that a question asks for, and by which factor."""

POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
WORDS = {"K": "kilo", "M": "mega", "G": "giga", "T": "tera"}
PERCENT = ("%", "percent", "per cent", "pct")
CLOCKS = ("clocks", "clock", "cycles", "clock cycles")
PER_BYTE = tuple(
    f"{flops}{per}" for flops in ("FLOP", "FLOPs", "operations") for per in ("/B", "/byte", " per byte")
)
TIMES = {"ns": 1e-3, "nanoseconds": 1e-3, "μs": 1, "us": 1, "microseconds": 1, "microsecond": 1, "ms": 1e3,
         "milliseconds": 1e3, "s": 1e6, "sec": 1e6, "seconds": 1e6}  # fmt: skip
THOUSANDS = {"thousand": 1, "thousands": 1, "k": 1, "thousand tokens": 1, "k tokens": 1, "million": 1e3,
             "M": 1e3, "million tokens": 1e3, "token": 1e-3, "tokens": 1e-3}  # fmt: skip


def fitting(unit: str) -> dict[str, float]:
    """Return {a way to write a unit: how many of `unit` it is}, of all that fit; small letters are in it too.

    unit: "" (a plain number), "%", "B", "KB" (here K is 1024, as a question says), "GB", "FLOP", "TFLOP/s",
    "FLOP/byte", "clocks", "microseconds" or "thousand tokens". KeyError if it is another.
    """
    of_one = {
        "": lambda: dict.fromkeys(PERCENT, 0.01) | dict.fromkeys(("x", "*", "times", "fold"), 1),
        "%": lambda: dict.fromkeys(PERCENT, 1),
        "B": lambda: _bytes(1024, 1),
        "KB": lambda: _bytes(1024, 1024),
        "GB": lambda: _bytes(1000, 1000**3),
        "FLOP": lambda: _flops("", 1),
        "TFLOP/s": lambda: _flops("/s", 1000**4) | _flops(" per second", 1000**4),
        "FLOP/byte": lambda: dict.fromkeys(PER_BYTE, 1),
        "clocks": lambda: dict.fromkeys(CLOCKS, 1),
        "microseconds": lambda: TIMES,
        "thousand tokens": lambda: THOUSANDS,
    }[unit]()
    return {name.lower(): factor for name, factor in reversed(of_one.items())} | of_one


def _bytes(base, one):
    units = {"bit": 1 / 8 / one, "bits": 1 / 8 / one, "byte": 1 / one, "bytes": 1 / one}
    for prefix, k in POWERS.items():
        names = [f"{prefix}B", *(f"{WORDS[prefix]}byte{s}" for s in ("", "s") if prefix in WORDS)]
        units |= dict.fromkeys(names, base**k / one)
        if prefix:
            units[f"{prefix}iB"] = 1024**k / one
    return units


def _flops(per, one):
    names = ("FLOP", "FLOPs", "FLOPS") if per else ("FLOP", "FLOPs", "operations")
    units = {f"{prefix}{name}{per}": 1000**k / one for prefix, k in POWERS.items() for name in names}
    return units | ({f"{prefix}FLOPS": 1000**k / one for prefix, k in POWERS.items()} if per else {})
