"""The description of one run that the launcher and its ranks are given."""

from typing import NamedTuple

from flashlib.learner import pickling


class Job(NamedTuple):
    """One run.

    modules: what is imported before the ranks are made. method: "fork", or "spawn" for a new Python for each.
    seconds: how long one rank waits for another. meeting: the folder of this run. The launcher makes it, so that
    none is left if the process that asks is killed first; both remove it, as either may be killed. environment,
    path, folder: those of the process that asks.
    """

    parcel: pickling.Parcel
    ranks: int
    seconds: float
    backend: str
    modules: tuple[str, ...]
    method: str
    meeting: str
    environment: dict
    path: list
    folder: str
