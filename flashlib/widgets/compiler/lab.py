"""Controls for `kernels.compiled`, made of ipywidgets: every answer needs a compiler, which no page has."""

import threading

import anywidget
from ipywidgets import HTML, Box, Checkbox, Dropdown, VBox

from flashlib.widgets.compiler import shown

AUTO = "default"  # the kernel chooses; None would show as nothing chosen
CHOICES = {
    "d": (16, 32, 64, 128, 256),
    "dtype": ("bfloat16", "float16", "float32"),
    "B_r": (16, 32, 64, 128, 256),
    "B_c": (16, 32, 64, 128, 256),
    "num_warps": (1, 2, 4, 8, 16),
    "num_stages": (1, 2, 3, 4, 5, 6),
}
NAMES = {"num_warps": "warps", "num_stages": "stages", "capability": "GPU"}
SETTINGS = {"kernel": "forward", "d": 128, "dtype": "bfloat16", "capability": 90, "causal": False}
SETTINGS |= dict.fromkeys(("B_r", "B_c", "num_warps", "num_stages", "descriptors"))


class Keys(anywidget.AnyWidget):
    """Keeps arrow keys and letters in the lab: JupyterLab takes them from lists, as commands for the cell."""

    _esm = """export default { render({ el }) {
        const own = (event) => event.ctrlKey || event.metaKey || event.altKey || event.stopPropagation();
        const listen = () => {
            const lab = el.closest(".flash-compiler");
            if (lab) lab.addEventListener("keydown", own);
            else waiting = requestAnimationFrame(listen); // not on the page yet
        };
        let waiting = requestAnimationFrame(listen);
        return () => cancelAnimationFrame(waiting);
    } };"""


class CompilerLab(VBox):
    """Registers, spills, shared memory, instructions and listings of a kernel, compiled on this computer.

    Keywords as those of `kernels.compiled.report`; its kernels, the passes of the backward among them, are in a
    list. report: the Compiled that is shown, or None. problem: a sentence in place of everything, or "". refused:
    why there is no report for the present settings, or "".
    """

    def __init__(self, **settings):
        self.report, self.problem, self.refused = None, "", ""
        self._lock, self._next, self._thread = threading.Lock(), None, None
        if unknown := set(settings) - set(SETTINGS):
            raise TypeError(f"CompilerLab() got an unexpected keyword argument {sorted(unknown)[0]!r}")
        super().__init__()
        self.add_class("flash-compiler")
        settings = SETTINGS | settings
        self._result = HTML()
        try:
            from flashlib.kernels import compiled  # no Triton for this system: it says so
        except ImportError as error:
            self._give_up(error)
            return
        self._compiled = compiled
        try:
            self.report = compiled.report(**settings)
        except (TypeError, ValueError) as error:
            self._give_up(error)
            return
        except compiled.CompileError as error:
            self.refused = str(error)
        self._controls = self._make_controls(settings)
        self._kind = Dropdown(
            options=[("TTGIR", "ttgir"), ("PTX", "ptx"), ("SASS", "sass")], description="listing"
        )
        self._state, self._listing = HTML(), HTML()
        for control in self._controls.values():
            control.observe(self._changed, "value")
        self._kind.observe(lambda change: self._draw(), "value")
        controls = Box(list(self._controls.values()))
        controls.add_class("flash-compiler-controls")
        keys = Keys(layout={"display": "none"})
        self.children = [HTML(shown.STYLE), keys, controls, self._state, self._result, self._kind, self._listing]
        self._enable()
        self._draw()

    def _give_up(self, error):
        self.problem = str(error)
        self.children = [HTML(shown.STYLE), HTML(shown.problem(self.problem))]

    def _make_controls(self, settings):
        compiled = self._compiled
        gpus = {f"{', '.join(m.gpus)} (sm_{c})": c for c, m in compiled.MULTIPROCESSORS.items()}
        options = {
            "kernel": list(compiled.kernels()),
            "capability": list(reversed(gpus.items())),
            "descriptors": [(AUTO, AUTO), ("pointers", False), ("descriptors", True)],
        }
        for name, choices in CHOICES.items():
            value = settings[name]
            choices = choices if value in (None, *choices) else (*choices, value)
            auto = [(AUTO, AUTO)] if SETTINGS[name] is None else []
            options[name] = [*auto, *((str(choice), choice) for choice in choices)]
        controls = {
            name: Dropdown(
                options=options[name],
                value=AUTO if settings[name] is None else settings[name],
                description=NAMES.get(name, name),
            )
            for name in SETTINGS
            if name != "causal"
        }
        controls["descriptors"].description = "loads"
        controls["causal"] = Checkbox(value=bool(settings["causal"]), description="causal", indent=False)
        return {name: controls[name] for name in SETTINGS}

    @property
    def settings(self) -> dict:
        """What is asked for, as keywords of `kernels.compiled.report`, of those that the kernel takes."""
        taken = self._compiled.options_of(self._controls["kernel"].value) | {"kernel", "d", "dtype", "capability"}
        values = {name: control.value for name, control in self._controls.items() if name in taken}
        return {name: None if value == AUTO else value for name, value in values.items()}

    def _enable(self):
        for name, control in self._controls.items():
            control.disabled = name not in self.settings

    def _changed(self, change):
        """Compile in the background, so that of many changes in a row only the last one is waited for."""
        self._enable()
        self._state.value = shown.state("compiling ...", busy=True)
        with self._lock:
            self._next = self.settings
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()

    def _work(self):
        while True:
            with self._lock:
                settings, self._next = self._next, None
                if settings is None:
                    self._thread = None
                    return
            try:
                report, refused = self._compiled.report(**settings), ""
            except (TypeError, ValueError, RuntimeError, OSError) as error:
                report, refused = None, str(error)
            with self._lock:
                if self._next is None:
                    self.report, self.refused = report, refused
                    self._draw()

    def wait(self):
        """Return when what was asked for last is shown."""
        while (thread := self._thread) is not None:
            thread.join()

    def _draw(self):
        self._result.value = shown.result(self.report) if self.report else ""
        self._listing.value = shown.listing(self.report, self._kind.value) if self.report else ""
        self._state.value = shown.state(self.refused or shown.summary(self.report), failed=bool(self.refused))

    def __repr__(self):
        told = self.problem or self.refused or shown.summary(self.report)
        return f"CompilerLab({told})"

    def _repr_mimebundle_(self, **kwargs):
        data = super()._repr_mimebundle_(**kwargs)
        if data:
            data["text/plain"] = repr(self)  # all of it: ipywidgets cuts after 110 characters
        return data
