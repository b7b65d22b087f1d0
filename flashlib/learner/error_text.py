"""The text of an error that a learner's code raised, short enough to be shown: it may have any length."""

LONGEST = 500  # characters of the text of an error


def cut(text: str, longest: int = LONGEST) -> str:
    """Return a text, without what follows its first `longest` characters."""
    return text if len(text) <= longest else f"{text[:longest]} ..."


def error_text(error: BaseException) -> str:
    """Return the class of an error and its text, cut; the class alone where the text is empty or raises."""
    kind = cut(type(error).__name__, 100)
    try:
        return cut(f"{kind}: {error}".removesuffix(": "))
    except BaseException:  # SystemExit too
        return kind
