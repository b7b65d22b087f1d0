"""PredictionCard: fields for what a learner expects, and the verdict on it with its reason."""

import traitlets

from flashlib.widgets.widget import Widget, script, style


class PredictionCard(Widget):
    """Ask for the parts of a prediction, and say whether they are right; after a wrong guess, first give a hint.

    The page grades, so it answers at once, even while Python is busy or not running.

    name: the question's. asks: its text, for `typeset`, hidden if the text just above contains the question.
    fields: a list of dicts, one for each part: `part`, its name; `label`; `kind`, "number", "bool", "choice",
    "tuple" or "set"; `right`, as returned by `answer_types.accepted`, and `shown`, its form in a verdict; `wrong`,
    pairs of a wrong answer and what it overlooks; `choices`; `length` of a tuple; for numbers `tolerance`,
    relative, and `unit`. reason: shown with the right answer. hint: shown after a wrong one. given: {part: text}
    from an earlier session. keep: called with what the learner gives.
    """

    _esm = script("prediction_card/prediction_card.js")
    _css = style("prediction_card/prediction_card.css")

    card = traitlets.Dict().tag(sync=True)
    given = traitlets.Dict(value_trait=traitlets.Unicode(), key_trait=traitlets.Unicode()).tag(sync=True)

    def __init__(self, name, asks, fields, reason, hint, given=None, keep=None):
        card = {"name": name, "asks": asks, "fields": fields, "reason": reason, "hint": hint}
        super().__init__(card=card, given=given or {})
        if keep:
            self.observe(lambda change: keep(change.new), names="given")

    def figure(self) -> None:
        """Return None: if nothing can be typed, the question above is enough."""

    def __repr__(self):
        labels = ", ".join(field["label"] for field in self.card["fields"])
        return f"A card asks for your prediction of {labels}." if labels else "A card asks for your prediction."
