"""New kinds of masks, defined outside this package: completed, or refused if some algorithm would ignore them."""

from typing import Any

OF_SEES = (  # other descriptions of the same scores as `sees`
    "bounds", "device_test", "band", "block_table", "document_ids", "candidates",
)  # fmt: skip
OF_BOTH = "closed_part", "some_heads"
ANSWERS = "check", "keys", "sees", *OF_SEES, "score", "slope", "bias_terms", "device_change", *OF_BOTH
UNLESS_IT_SAYS = "asks_batch", "asks_head", "may_change"  # True for a new kind


def in_package(cls: type) -> bool:
    """Return whether a class belongs to this package, whose masks describe themselves completely."""
    return cls.__module__.partition(".")[0] == "flashlib"


def complete(cls: type, base: Any) -> None:
    """Set the attributes that a new class of masks leaves open; raise TypeError if some algorithm would ignore it.

    base: Mask. A class is assumed to depend on the batch and the head, and to change from call to call, unless it
    says otherwise.
    """
    defined = {name: _first_to_define(cls, name) for name in (*ANSWERS, *UNLESS_IT_SAYS)}
    if _check(cls, base, defined):
        return
    order = cls.__mro__.index
    for answers, basis in ((OF_SEES + OF_BOTH, "sees"), (("device_change", *OF_BOTH), "score")):
        for name in answers:
            if defined[name] is not base and order(defined[basis]) < order(defined[name]):
                setattr(cls, name, getattr(base, name))  # the inherited one belongs to another `sees` or `score`
    if defined["score"] is not base:
        cls.changes_scores = True  # type: ignore[attr-defined]
    for name in UNLESS_IT_SAYS:
        if defined[name] is base:
            setattr(cls, name, True)


def check_instance(mask: Any) -> None:
    """Raise TypeError for a mask whose methods are set on the object, or that cannot be a key of a dict."""
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
    """Return whether a class changes nothing of a kind of this package; raise TypeError if it would be ignored."""
    name, kind = cls.__name__, next((c for c in cls.__mro__ if _is_kind(c, base)), None)
    changed = [answer for answer in ANSWERS if not in_package(defined[answer])]
    if kind and changed:
        raise TypeError(
            f"{name} derives from {kind.__name__} and overrides {', '.join(changed)}, but algorithms also use "
            f"other methods of {kind.__name__}: derive from flashlib.masks.Mask, or combine masks with & and |"
        )
    if kind:
        return True
    if "keys" in changed:
        raise TypeError(f"{name} overrides keys: override bounds, which keys calls")
    for answers, basis, what in (
        (OF_SEES, "sees", "sees(place, r, c) too, which says whether each score is seen"),
        (("device_change",), "score", "score and slope too, which all algorithms but the kernels use"),
    ):
        alone = [answer for answer in answers if answer in changed]
        if alone and defined[basis] is base:
            raise TypeError(f"{name} overrides {', '.join(alone)} and not {basis}: override {what}")
    if (defined["score"] is base) != (defined["slope"] is base):
        given, missing = ("slope", "score") if defined["score"] is base else ("score", "slope")
        raise TypeError(
            f"{name} overrides {given} and not {missing}: override both; slope is the derivative of score with "
            "respect to S, and None where it is 1"
        )
    return False


def _is_kind(cls, base):
    return in_package(cls) and issubclass(cls, base) and cls is not base


def _first_to_define(cls, name):
    """Return the class that an attribute is inherited from."""
    return next(c for c in cls.__mro__ if name in vars(c))
