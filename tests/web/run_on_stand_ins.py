"""A program for a new process: verdicts on answers, as JSON lines, with a page's stand-ins or with the real ones.

python run_on_stand_ins.py page|real   reads [[exercise, its text], ...] and prints {"outcome", "mistake", "text"}.
"""

import contextlib
import io
import json
import os
import sys
import warnings

SEED = 4711


def here(function, *arguments, limit):  # noqa: ARG001
    """Do what `process.call` does, in this process."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings(action="ignore"):
        return function(*arguments), printed.getvalue()


def verdicts(asked):
    """Yield the verdict on each answer."""
    import flashlib.kernels  # noqa: F401  before Triton, which answers import
    from flashlib import checks
    from flashlib.checks.engine import compiling, solutions
    from flashlib.learner import process

    process.call, compiling.noting = here, contextlib.nullcontext
    for exercise, text in asked:
        verdict = checks.EXERCISES[exercise](solutions.build(exercise, text), seed=SEED)
        yield {"outcome": verdict.outcome, "mistake": verdict.mistake, "text": str(verdict)}


def main(which):
    os.environ["TRITON_INTERPRET"] = "1"
    if which == "page":
        from web.live.inside import stand_ins

        stand_ins.install()
    for verdict in verdicts(json.load(sys.stdin)):
        print(json.dumps(verdict), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
