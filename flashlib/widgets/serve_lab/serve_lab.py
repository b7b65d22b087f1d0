"""ServeLab: requests come and go, and in each step a scheduler decides which decode, read or wait."""

import traitlets

from flashlib.pictures.canvas import Picture
from flashlib.widgets.lab import Lab
from flashlib.widgets.serve_lab import choices, figure, runs, words
from flashlib.widgets.serve_lab.account import Account, opens
from flashlib.widgets.serve_lab.scenarios import SCENARIOS
from flashlib.widgets.widget import script, style

BOTH = True, False  # continuous, and static


class ServeLab(Lab):
    """Play how `server.Server` serves requests, step by step: continuous batching above, and static below.

    scenario: "short and long answers", "all alike", "one long prompt", "too few pages" or "the same beginning".
    batch: how many requests run at once, 1 to 8. chunk: how many tokens of prompts a step reads, 1 to 64.
    n_pages: pages of 4 tokens in the cache, 8 to 64.
    A small model with random weights computes every token, and everything shown comes from the Records of both
    runs. All four can be set later, from Python or on the page; a value that is not accepted then changes nothing,
    and `refused` says why. `result` holds what is shown.
    """

    _esm = script("serve_lab/serve_lab.js")
    _css = style("serve_lab/serve_lab.css")

    scenario = traitlets.Unicode().tag(sync=True)
    batch = traitlets.Int().tag(sync=True)
    chunk = traitlets.Int().tag(sync=True)
    n_pages = traitlets.Int().tag(sync=True)
    result = traitlets.Dict().tag(sync=True)

    def __init__(self, scenario="short and long answers", *, batch=4, chunk=8, n_pages=16):
        super().__init__({"scenario": scenario, "batch": batch, "chunk": chunk, "n_pages": n_pages})

    _checked = staticmethod(choices.checked)

    def _computed(self, setting):
        requests = SCENARIOS[setting["scenario"]]
        both = [runs.run(**setting, continuous=continuous) for continuous in BOTH]
        accounts = [
            Account(requests, run.records, batch=setting["batch"], continuous=continuous)
            for run, continuous in zip(both, BOTH, strict=True)
        ]
        sums = [account.sums for account in accounts]
        steps = max(one.steps for one in sums)
        return {
            **{"setting": setting, "stops": choices.STOPS, "scenarios": list(SCENARIOS), "page": runs.PAGE},
            "requests": [one._asdict() for one in requests],
            "steps": steps,
            "opens": opens(*(one.lanes for one in accounts), steps),
            "most": max(one.most for one in sums),
            "runs": [self._shown(*one, steps) for one in zip(accounts, BOTH, strict=True)],
            "totals": words.totals(sums),
            "equal": words.equal(both[0].written == both[1].written, len(requests)),
        }

    @staticmethod
    def _shown(account, continuous, steps):
        return {
            **{"name": words.NAMES[continuous], "steps": len(account.frames), "lanes": account.lanes},
            **{"parts": account.parts, "words": words.run(continuous, account.sums)},
            "first": [account.first[k] for k in range(len(account.requests))],
            "last": [account.last[k] for k in range(len(account.requests))],
            "frames": account.padded(steps),
        }

    def figure(self) -> Picture:
        return figure.draw(self.result)

    def _sizes(self):
        r = self.result
        setting = ", ".join(f"{name}={value!r}" for name, value in r["setting"].items())
        return f"{setting}: {' '.join(one['words'] for one in r['runs'])}".rstrip(".")
