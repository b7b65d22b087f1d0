"""The sentences of PagesLab: what an operation did, from the snapshots before and after it."""

from collections.abc import Sequence

from flashlib.language.phrases import and_list, by_number, counted
from flashlib.widgets.pages_lab.look import Look

MOST_NAMED = 6  # pages, or runs of them


def begun(n_pages: int, page: int) -> str:
    return (
        f"{counted(n_pages, 'page', 'pages')} of {counted(page, 'row', 'rows')}, a row for a token. All are free."
    )


def started(name: str, known: int, tokens: Sequence[int], before: Look, after: Look) -> str:
    own = after.pages[name]
    if not tokens:
        return f"{name} begins without a page."
    if not known:
        return f"None of its {len(tokens)} tokens is known; {name} begins without a page."
    sentences = [f"The first {known} of its {len(tokens)} tokens are known and need not be computed."]
    owners = sorted({other for page in own for other in after.owners(page) if other != name})
    if shared := [page for page in own if len(after.owners(page)) > 1]:
        which, names = pages(shared), and_list(owners)
        sentences.append(
            by_number(len(shared), f"{which} is shared with {names}.", f"{which} are shared with {names}.")
        )
    if kept := [page for page in own if page in before.kept and page not in shared]:
        one = f"{pages(kept)}, kept for its content, is {name}'s."
        sentences.append(by_number(len(kept), one, f"{pages(kept)}, kept for their content, are {name}'s."))
    return " ".join(sentences)


def appended(name: str, page: int, copied: list[int], before: Look, after: Look) -> str:
    old = before.pages[name]
    taken = [one for one in after.pages[name] if one not in old]
    sentences = []
    if copied:
        shared, copy = copied
        if len(before.owners(shared)) > 1:
            sentences.append(f"Page {shared} was shared, so it was copied to page {copy}.")
        else:
            sentences.append(f"Page {shared} is {name}'s alone, and yet it was copied to page {copy}.")
        taken.remove(copy)
    elif not taken:
        sentences.append(f"Page {old[-1]} is {name}'s alone and has room: no page is taken.")
    elif before.lengths[name] % page:
        sentences.append(f"Page {old[-1]} had room for {page - before.lengths[name] % page}.")
    kept = [one for one in taken if one in before.kept]
    if free := [one for one in taken if one not in kept]:
        which = pages(free)
        sentences.append(
            by_number(len(free), f"{which} was free and is taken.", f"{which} were free and are taken.")
        )
    if kept:
        one = f"{pages(kept)}, kept for its content, is taken: the content is lost."
        several = f"{pages(kept)}, kept for their contents, are taken: the contents are lost."
        sentences.append(by_number(len(kept), one, several))
    return " ".join(sentences)


def forked(name: str, of: str, after: Look) -> str:
    tokens = counted(after.lengths[name], "token", "tokens")
    if own := after.pages[name]:
        return f"{name} has the same {tokens} as {of}, in the same {pages(own).lower()}: nothing is copied."
    return f"{name} has the same {tokens} as {of}."


def released(name: str, before: Look, after: Look) -> str:
    """Return sentences on what becomes of the pages that a sequence gave up."""
    gone = [page for page in before.pages[name] if page not in after.pages.get(name, ())]
    stay = [page for page in gone if after.owners(page)]
    kept = [page for page in gone if page in after.kept]
    free = [page for page in gone if page not in stay and page not in kept]
    sentences = []
    if stay:
        which, names = pages(stay), _owners(stay, after)
        sentences.append(by_number(len(stay), f"{which} stays with {names}.", f"{which} stay with {names}."))
    if kept:
        one = f"{pages(kept)} is kept for its content."
        sentences.append(by_number(len(kept), one, f"{pages(kept)} are kept for their content."))
    if free:
        sentences.append(by_number(len(free), f"{pages(free)} is free.", f"{pages(free)} are free."))
    return " ".join(sentences) or "No page becomes free."


def refused(needed: int, before: Look, n_pages: int, raised: str) -> str:
    owned = {page for own in before.pages.values() for page in own}
    free = n_pages - len(owned) - len(before.kept)
    room = by_number(free, "1 is free", f"{free} are free") if free else "none is free"
    if before.kept:
        kept = len(before.kept)
        room = by_number(kept, f"{room} and 1 is kept", f"{room} and {kept} are kept")
    return f"It needs {counted(needed, 'page', 'pages')}, and {room}: {raised}. Nothing was changed."


def put_off(name: str, alone: bool) -> str:
    if alone:
        return f"There are not enough pages for {name} alone, so it is turned away."
    return f"{name} came last, so it has to give its pages back and wait."


def ended(frames: list[dict], longest: int) -> str:
    """Return sentences on how many rows held no token, over all frames."""
    rows, waste, reserved, reserved_waste = totals(frames)
    return (
        f"The end. Over all steps {share(waste, rows)} of the rows in owned pages held no token. With {longest} "
        "rows reserved for each sequence, as many as the longest one needs, "
        f"{share(reserved_waste, reserved)} would have held none."
    )


def totals(frames: list[dict]) -> list[int]:
    """Return sums over all frames: rows of owned pages, those without a token, and both for reserved rows."""
    return [
        sum(frame["counts"][name] for frame in frames) for name in ("rows", "waste", "reserved", "reserved_waste")
    ]


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "0%"


def pages(numbers: list[int]) -> str:
    """Return pages as the beginning of a sentence: "Page 3", "Pages 3 and 5", "Pages 3 to 7 and 9"."""
    runs = []
    for page in sorted(numbers):
        if runs and runs[-1][1] == page - 1:
            runs[-1][1] = page
        else:
            runs.append([page, page])
    parts = [part for first, last in runs for part in _parts(first, last)]
    named = parts[:MOST_NAMED]
    if len(parts) > MOST_NAMED:
        named.append("others")
    return f"Pages {and_list(named)}" if len(numbers) > 1 else f"Page {and_list(named)}"


def _parts(first, last):
    return [str(first)] + [str(last)] * (last > first) if last < first + 2 else [f"{first} to {last}"]


def _owners(numbers, after):
    return and_list(sorted({name for page in numbers for name in after.owners(page)}))
