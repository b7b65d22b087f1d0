"""The base of the widgets with settings: a value that is not accepted is reverted, with the reason."""

import traitlets

from flashlib.widgets.widget import Widget


class Lab(Widget):
    """A widget that shows what Python computes from its settings, and computes it again when one changes.

    A setting is a synced trait. If one is not accepted at first, a sentence appears in place of the widget, see
    `problem`. If one set later, from Python or the page, is not accepted, it is reverted, `refused` says why, and
    the result stays; other settings of the same message are accepted. A subclass passes its settings to
    `__init__`, and has

    _take(**fixed): keep what cannot be changed later; raise TypeError or ValueError if it is not accepted.
    _checked(name, value): return a setting as a built-in type; raise if it is never accepted, whatever the others.
    _computed(setting): return what is shown, with the setting under "setting", which may differ from the given
    one: settings that depend on others are adjusted. Raise, and change nothing, if settings do not fit together.

    Each error says what was given and what is accepted, without a full stop.
    """

    _shows = "result"  # the trait with what is shown
    _texts: tuple[str, ...] = ()  # settings that are typed: a refused one stays as typed, to be corrected

    _answered: dict = {}  # the setting after the last answer; empty if nothing can be shown

    asked = traitlets.Int().tag(sync=True, echo_update=False)

    def __init_subclass__(cls, **kwargs):
        """Keep ipywidgets from echoing settings to all pages before it computes: the answer contains them.

        An echo costs 2 ms per change. A typed setting is echoed, since the answer lacks it if it is refused.
        """
        for name, trait in vars(cls).items():
            if isinstance(trait, traitlets.TraitType) and name not in cls._texts:
                trait.metadata["echo_update"] = False
        super().__init_subclass__(**kwargs)

    def __init__(self, setting, **fixed):
        try:
            self._take(**fixed)
            self._first = {name: self._checked(name, value) for name, value in setting.items()}
            shown = self._computed(self._first)
        except (TypeError, ValueError) as error:
            super().__init__(problem=_sentence(error))
            return
        self._answered = shown["setting"]
        super().__init__(**self._answered, **{self._shows: shown})
        self.observe(self._answer, names=list(self._answered))

    def _take(self):
        """By default nothing is fixed."""

    def _checked(self, name, value):
        return value

    def _computed(self, setting):
        raise NotImplementedError

    def _used(self, setting):
        """Return the names of the settings that affect the result; refusals of others are not reported."""
        return setting.keys()

    @property
    def _setting(self) -> dict:
        """The setting that is shown; empty while there is none."""
        return getattr(self, self._shows).get("setting", {})

    def _note(self, change):
        """Note a request together with its answer: a page that did not ask takes its setting from both."""
        self._answer(change)
        super()._note(change)

    def _answer(self, change):
        """Show a new setting; values that are not accepted are reverted to those shown."""
        wanted = {name: getattr(self, name) for name in self._setting}
        if wanted == self._answered:  # a message may change several at once, and reverting is a change too
            return
        self.refused = ""  # so that the same sentence again counts as an answer
        good, refusals = self._accepted(wanted)
        shown = getattr(self, self._shows)
        try:
            if good != self._setting:
                shown = self._computed(good)
        except (TypeError, ValueError) as error:
            refusals.append(self._refusal(error, [name for name in good if good[name] != self._setting[name]]))
        self._answered = shown["setting"] | {name: wanted[name] for name in self._texts}
        with self.hold_sync(), self.hold_trait_notifications():  # all at once: nothing is computed between
            self.set_trait(self._shows, shown)
            self.refused = " ".join(refusals)
            for name, value in self._answered.items():
                setattr(self, name, value)
            self.heard = self.asked  # with the answer, which saves a message

    def _accepted(self, wanted):
        """Return the setting with the accepted values of `wanted`, and a sentence on each of the others."""
        good, errors = dict(self._setting), {}
        for name, value in wanted.items():
            try:
                good[name] = self._checked(name, value)
            except (TypeError, ValueError) as error:
                errors[name] = error
        used = self._used(good)
        return good, [self._refusal(error, [name]) for name, error in errors.items() if name in used]

    def _refusal(self, error, names):
        """Return why settings are refused, and which values they keep."""
        shown = {name: f"{self._setting[name]!r:.60}" for name in names}
        stays = shown.values() if len(names) == 1 else (f"{name}={value}" for name, value in shown.items())
        return f"{_sentence(error)} It stays {', '.join(stays)}."


def _sentence(error):
    return f"{str(error).rstrip('.')}."
