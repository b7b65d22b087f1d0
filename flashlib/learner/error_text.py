"""The text of an error that a learner's code raised, which may have any length, cut so that it can be shown."""

LONGEST = 500  # characters of an error's text


def cut(text: str, longest: int = LONGEST) -> str:
    """Return the first `longest` characters of a text."""
    return text if len(text) <= longest else f"{text[:longest]} ..."


def error_text(error: BaseException) -> str:
    """Return the class of an error and its text, cut; only the class if the text is empty or raises."""
    kind = cut(type(error).__name__, 100)
    try:
        return cut(f"{kind}: {error}".removesuffix(": "))
    except BaseException:  # SystemExit too
        return kind
