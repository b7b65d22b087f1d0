"""The runs of ServeLab: a Server of a small model with random weights serves the requests of a scenario."""

from functools import lru_cache
from typing import NamedTuple

from flashlib.widgets.serve_lab.model import Model
from flashlib.widgets.serve_lab.scenarios import SCENARIOS, VOCAB, prompts

PAGE = 4  # tokens: so few that a short text has several pages
MODEL = Model(VOCAB)


class Run(NamedTuple):
    """The Records of `serve.play`, and the tokens that each request wrote."""

    records: tuple
    written: dict


@lru_cache(64)
def run(scenario, batch, chunk, n_pages, continuous) -> Run:
    """Return the run of a scenario: its requests are served, and the model computes every token of them."""
    from flashlib.lm import (
        server as serve,  # only when called: it imports torch, and the widgets of other chapters do without
    )

    server = serve.Server(MODEL, n_pages, PAGE, chunk=chunk, batch=batch, continuous=continuous)
    requests = [
        serve.Request(prompt, coming.answer, seed=seed, arrives=coming.arrives)
        for seed, (prompt, coming) in enumerate(zip(prompts(scenario), SCENARIOS[scenario], strict=True))
    ]
    return Run(tuple(serve.play(server, requests)), server.written)
