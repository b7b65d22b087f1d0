"""The runs of ServeLab: a Server of a small model with random weights serves the requests of a scenario."""

from functools import cache, lru_cache
from typing import NamedTuple

from flashlib.widgets.serving.scenarios import SCENARIOS, VOCAB, prompts

PAGE = 4  # tokens: so few that a short text has several pages


class Run(NamedTuple):
    """The Records of `serve.play`, and the tokens that each request wrote."""

    records: tuple
    written: dict


@lru_cache(64)
def run(scenario, batch, chunk, n_pages, continuous) -> Run:
    """Return the run of a scenario: its requests are served, and the model computes every token of them."""
    import torch  # only when called: the widgets of other chapters do without

    from flashlib import serve

    server = serve.Server(_model(), n_pages, PAGE, chunk=chunk, batch=batch, continuous=continuous)
    requests = [
        serve.Request(prompt, coming.answer, seed=seed, arrives=coming.arrives)
        for seed, (prompt, coming) in enumerate(zip(prompts(scenario), SCENARIOS[scenario], strict=True))
    ]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the products are tiny: threads would only wait for each other
    try:
        return Run(tuple(serve.play(server, requests)), server.written)
    finally:
        torch.set_num_threads(threads)


@cache
def _model():
    """Return a model in fp64, so that what a request writes does not depend on rounding."""
    from flashlib import gpt, lm

    longest = max(one.prompt + one.answer for requests in SCENARIOS.values() for one in requests)
    sizes = {"vocab": VOCAB, "layers": 1, "width": 8, "heads": 2, "kv_heads": 1, "context": longest}
    return lm.LM(gpt.Config(**sizes)).double()
