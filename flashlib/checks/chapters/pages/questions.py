"""The questions of this chapter."""

from flashlib.cache.pages import Pages
from flashlib.checks.engine.prediction import Question

PAGE = 16


def _forked():
    """Return how many pages are owned after 40 tokens were forked and each copy has got one more token."""
    pages = Pages(64, PAGE)
    one, _ = pages.start()
    pages.append(one, 40)
    for sequence in (pages.fork(one), one):
        pages.append(sequence, 1)
    return pages.used


def _lost(tokens):
    """Return how many new keys a fork loses if nobody copies a page: both go into a last page with room."""
    return int(tokens % PAGE > 0)


def _known():
    """Return how many tokens of three prompts are known if 8 tokens are in pages of 4."""
    pages, prompt = Pages(64, 4), [7, 3, 9, 9, 1, 4, 1, 5]
    pages.append(pages.start(prompt)[0], prompt)
    prompts = {"longer": [*prompt, 8, 8, 8], "same": prompt, "later": [1, *prompt]}
    return {name: pages.start(tokens)[1] for name, tokens in prompts.items()}


def _steps(*answers, slots=2):
    """Return how many steps answers take, at one token per step, if slots are filled in batches and one by one."""
    batches = sum(max(answers[k : k + slots]) for k in range(0, len(answers), slots))
    ends = [0] * slots
    for answer in answers:
        ends[ends.index(min(ends))] += answer
    return {"static": batches, "continuous": max(ends)}


QUESTIONS = [
    Question(
        "fork_pages",
        _forked,
        "40 tokens have 3 pages, which the fork shares. The first of the two that writes copies the last page, so "
        "there are 4. Then the old page has one owner, who writes into it without a copy.",
        hint="How many pages do 40 tokens take? Which page is written by the first of the two, and who else owns "
        "it?",
        wrong={
            3: "both write into the third page, and their tokens differ: one of them needs a copy",
            5: "once one of the two has its copy, the other is the only owner of the old page",
            6: "that would be without sharing: the first two pages stay shared",
        },
    ),
    Question(
        "shared_write",
        lambda: {"of_40": _lost(40), "of_32": _lost(32)},
        "after 40 tokens both new keys belong in row 8 of the third page, which both tables name: b writes last, "
        "and a reads the key of b as its own. 32 tokens fill two pages, so each new key begins a page that its "
        "sequence takes for itself.",
        hint="In which page and row does the new key of each go? Is that page full, or shared?",
        wrong={
            ("of_40", 0): "the key of b goes into the same row as that of a, after it",
            ("of_40", 2): "b writes last, so its key stays",
            ("of_40", 9): "the other keys of that page are the same for both",
            ("of_32", 1): "32 tokens fill two pages: the new key of each begins a page of its own",
            ("of_32", 2): "32 tokens fill two pages: the new key of each begins a page of its own",
        },
        labels={"of_40": "lost after 40 tokens", "of_32": "lost after 32 tokens"},
    ),
    Question(
        "known_tokens",
        _known,
        "whole pages are known, and never all of a prompt: of one that is there in full, the last page is "
        "computed again. After a different first token all K and V differ, and so does the hash of each page.",
        hint="Only whole pages are known. Must a token of the prompt go through the model? What does the hash of "
        "a page depend on?",
        wrong={
            ("longer", 11): "the last three tokens are new",
            ("longer", 4): "both pages of the first 8 tokens are known",
            ("same", 8): "the last token goes through the model again: what follows is predicted from it",
            ("same", 7): "whole pages are known: if one token is computed, so is its page",
            ("later", 8): "K and V depend on all tokens before, and the first one differs",
            ("later", 4): "K and V depend on all tokens before, and the first one differs",
            ("later", 9): "the first token differs, and K and V of all others depend on it",
        },
        labels={
            "longer": "the 8 tokens and 3 more",
            "same": "exactly the 8 tokens",
            "later": "one other token first",
        },
    ),
    Question(
        "shared_reads",
        lambda: 64 * (8192 + 512) / (8192 + 64 * 512),
        "64 * 8704 = 557056 tokens are read if each sequence reads its own prompt, and 8192 + 64 * 512 = 40960 if "
        "it is read once. The longer the prompt, the less the other tokens matter, so the factor approaches 64.",
        hint="Count the tokens read each way: the prompt by each or once, and their own.",
        wrong={
            64: "the 512 tokens of each sequence are read as before",
            17: "8704 / 512 would be without reading the prompt at all",
            16: "8192 / 512 compares the prompt with the rest of one sequence",
            12.8: "the prompt of 64 sequences has 524288 tokens, and their own are read too",
        },
        tolerance=0.02,
    ),
    Question(
        "batching_steps",
        lambda: _steps(*[8, 1, 1, 1] * 3, slots=4),
        "each batch of four waits for its long answer, so three batches are 3 * 8 steps. If the next one joins at "
        "once, the second long answer begins after 1 step and the third after 2, so all end after 10.",
        hint="Draw the four slots step by step. When does the second long answer get a slot? And the third?",
        wrong={
            ("static", 8): "the next four begin only when all of the first four are done, after 8 steps",
            ("static", 33): "four requests run at a time, and each writes a token in a step",
            ("static", 9): "33 tokens in four slots are 9 steps only if no slot is ever empty",
            ("static", 27): "the short answers of a batch run at the same time as the long one",
            ("continuous", 9): "33 tokens fit into four slots of 9 steps, but the third long answer waits for 2",
            ("continuous", 8): "the second and the third long answer wait for a slot first",
            ("continuous", 24): "that is in batches: here a slot is filled again when an answer is done",
            ("continuous", 33): "four requests run at a time, and each writes a token in a step",
            (
                "continuous",
                11,
            ): "a request joins as soon as a slot is free: the third long one begins after 2 steps",
        },
        labels={"static": "steps if all four are awaited", "continuous": "steps if the next one joins"},
    ),
]
