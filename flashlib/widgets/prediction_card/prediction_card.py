"""PredictionCard: fields for what a learner expects, and the verdict on it with its reason."""

import traitlets

from flashlib.widgets.widget import Widget, script, style


class PredictionCard(Widget):
    """Ask for the parts of a prediction, and say whether they are right; a wrong guess gets a hint first.

    The page grades, so it answers at once, also while Python is busy or is not there.

    name: the question's. asks: its text, for `typeset`, which is hidden where a text with the question is just
    above. fields: a list of dicts, one for each part: `part`, its name; `label`; `kind`, "number", "bool",
    "choice", "tuple" or "set"; `right`, as `answer_types.accepted` returns it, and `shown`, as a verdict says it;
    `wrong`, pairs of a wrong answer and what it overlooks; `choices`; `length` of a tuple; of numbers their
    `tolerance`, relative, and `unit`. reason: said with the right answer. hint: said of a wrong one. given: {part:
    text} from an earlier time. keep: called with what is given.
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
        """Return None: where nothing can be typed, the question above is enough."""

    def __repr__(self):
        labels = ", ".join(field["label"] for field in self.card["fields"])
        return f"A card asks for your prediction of {labels}." if labels else "A card asks for your prediction."
