"""Lists of parameters of which a few entries are short and all others long: see tests/tiers.py."""


def amounts(entries, few) -> list:
    """Return (amount, entry) of each entry, for the parameters "amount, name" of a test."""
    entries = list(entries)
    assert all(entry in entries for entry in few), f"{few} are not all among {entries}"
    return [("few" if entry in few else "all", entry) for entry in entries]
