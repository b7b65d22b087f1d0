"""The runs of ServeLab: a Server of a small model with random weights serves the requests of a scenario."""

from functools import lru_cache
from typing import NamedTuple

from flashlib.widgets.serve_lab.model import Model
from flashlib.widgets.serve_lab.scenarios import SCENARIOS, VOCAB, prompts

PAGE = 4  # tokens: few enough that a short text has several pages
MODEL = Model(VOCAB)


class ServedRun(NamedTuple):
    """The Records of `server.play`, and the tokens that each request wrote."""

    records: tuple
    written: dict


@lru_cache(64)
def run(scenario: str, batch: int, chunk: int, n_pages: int, continuous: bool) -> ServedRun:
    """Return the run of a scenario: its requests are served, and the model computes all of their tokens."""
    # Only when called: it imports torch, which the widgets of other chapters do not need.
    from flashlib.lm.server import Request, Server, play

    server = Server(MODEL, n_pages, PAGE, chunk=chunk, batch=batch, continuous=continuous)
    requests = [
        Request(prompt, coming.answer, seed=seed, arrives=coming.arrives)
        for seed, (prompt, coming) in enumerate(zip(prompts(scenario), SCENARIOS[scenario], strict=True))
    ]
    return ServedRun(tuple(play(server, requests)), server.written)
