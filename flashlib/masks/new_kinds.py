"""New kinds of masks, defined outside this package: completed, or refused if some algorithm would ignore them."""

from typing import Any

ANSWERS = "check", "keys", "bounds", "sees", "score", "slope", "bias_terms"


def of_course(cls: type) -> bool:
    """Return whether a class belongs to this package, whose kernels know its kinds of masks by their types."""
    return cls.__module__.partition(".")[0] == "flashlib"


def complete(cls: type, base: Any) -> None:
    """Set what a new class of masks leaves open; raise TypeError for one that some algorithm would ignore.

    base: Mask. A class is taken to depend on the batch and the head unless it says otherwise, and to answer
    differently in each call.
    """
    defined = {name: _first_to_define(cls, name) for name in (*ANSWERS, "asks_batch", "asks_head")}
    _check(cls, base, defined)
    order = cls.__mro__.index
    if defined["bounds"] is not base and order(defined["sees"]) < order(defined["bounds"]):
        _set(cls, bounds=base.bounds)  # the inherited ones belong to another `sees`
    if defined["score"] is not base:
        _set(cls, changes_scores=True)
    _set(cls, **{name: True for name in ("asks_batch", "asks_head") if defined[name] is base})
    _set(cls, functions=property(lambda mask: (mask,)))


def check_instance(mask: Any) -> None:
    """Raise TypeError for a mask whose methods are set on the object, or that cannot be the key of a dict."""
    own = [name for name in ANSWERS if name in getattr(mask, "__dict__", ())]
    if own:
        raise TypeError(
            f"{', '.join(own)} is set on an object of {type(mask).__name__}, and the algorithms use its class: "
            "override it in a class that derives from flashlib.masks.Mask"
        )
    try:
        hash(mask)
    except TypeError as error:
        raise TypeError(
            f"a mask must be hashable, and {type(mask).__name__} is not ({error}): write @dataclass(eq=False), or "
            "remove its __eq__"
        ) from None


def _check(cls, base, defined):
    """Raise TypeError for a class that some algorithm would take for the one that it derives from."""
    name, kind = cls.__name__, next((c for c in cls.__mro__ if _is_kind(c, base)), None)
    changed = [answer for answer in ANSWERS if not of_course(defined[answer])]
    if kind and changed:
        raise TypeError(
            f"{name} derives from {kind.__name__} and overrides {', '.join(changed)}, and kernels know "
            f"{kind.__name__} by its type: derive from flashlib.masks.Mask, or combine masks with & and |"
        )
    if "keys" in changed:
        raise TypeError(f"{name} overrides keys: override bounds, which keys calls")
    if "bounds" in changed and defined["sees"] is base:
        raise TypeError(
            f"{name} overrides bounds and not sees: override sees(place, r, c) too, which says whether each score "
            "is seen"
        )
    if (defined["score"] is base) != (defined["slope"] is base):
        given, missing = ("slope", "score") if defined["score"] is base else ("score", "slope")
        raise TypeError(
            f"{name} overrides {given} and not {missing}: override both; slope is the derivative of score with "
            "respect to S, and None where it is 1"
        )


def _is_kind(cls, base):
    return of_course(cls) and issubclass(cls, base) and cls is not base


def _first_to_define(cls, name):
    """Return the class that an attribute is inherited from."""
    return next(c for c in cls.__mro__ if name in vars(c))


def _set(cls, **attributes):
    for name, value in attributes.items():
        setattr(cls, name, value)
