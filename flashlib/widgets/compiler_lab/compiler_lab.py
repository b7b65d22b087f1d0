"""CompilerLab: choose a kernel, a tile and a GPU, and see what the compiler makes of them."""

import threading

import traitlets

from flashlib.pictures.canvas import Picture
from flashlib.widgets.compiler_lab import figure, numbers, words
from flashlib.widgets.compiler_lab.choices import SETTINGS, offered, plain, taken
from flashlib.widgets.widget import Widget, script, style

AT_ONCE = 0.15  # seconds: what takes no longer, since it was compiled before, is shown without "compiling"


class CompilerLab(Widget):
    """Registers, spills, shared memory, instructions and listings of a kernel, compiled on this computer.

    For GPUs of NVIDIA and AMD, in the words of each.

    The keywords are those of `kernels.compiler.compiled.report`; its kernels, backward passes included, are in a
    list. All can be set later, from Python or on the page: then a thread compiles, `wait` waits for it, `cancel`
    ends it, and what is shown stays until there is something newer. The first report is waited for, as a cell
    waits for what it computes. report: the Compiled that is shown, or None. failed: why there is no report
    for the present settings, or "". `result` holds all that is shown, `work` what the compiler is doing.
    """

    _esm = script("compiler_lab/compiler_lab.js")
    _css = style("compiler_lab/compiler_lab.css")

    kernel = traitlets.Unicode().tag(sync=True)
    d = traitlets.Int().tag(sync=True)
    dtype = traitlets.Unicode().tag(sync=True)
    capability = traitlets.Union([traitlets.Int(), traitlets.Unicode()]).tag(sync=True)
    causal = traitlets.Bool().tag(sync=True)
    B_r = traitlets.Int(None, allow_none=True).tag(sync=True)
    B_c = traitlets.Int(None, allow_none=True).tag(sync=True)
    num_warps = traitlets.Int(None, allow_none=True).tag(sync=True)
    num_stages = traitlets.Int(None, allow_none=True).tag(sync=True)
    descriptors = traitlets.Bool(None, allow_none=True).tag(sync=True)
    offered = traitlets.Dict().tag(sync=True)
    result = traitlets.Dict().tag(sync=True)
    work = traitlets.Dict().tag(sync=True)

    def __init__(self, **settings):
        self.report, self.failed = None, ""
        self._lock, self._job, self._jobs = threading.RLock(), None, []  # the one that is waited for, all at work
        self._asked, self._shown = None, 0
        if unknown := set(settings) - set(SETTINGS):
            raise TypeError(f"CompilerLab() got an unexpected keyword argument {sorted(unknown)[0]!r}")
        settings = SETTINGS | settings
        try:
            from flashlib.widgets.compiler_lab import background  # no Triton for this system: it says so
        except ImportError as error:
            super().__init__(problem=str(error))
            return
        self._background = background
        first = background.Job(settings)
        first.compile()
        if isinstance(first.error, (TypeError, ValueError)):
            super().__init__(problem=str(first.error))
            return
        super().__init__(**plain(settings), offered=offered())
        self._asked = first.settings = self.settings
        self._show(first)
        self.observe(self._ask, names=list(SETTINGS))
        self.on_msg(self._hear)

    @property
    def settings(self) -> dict:
        """The settings that the kernel takes, as keywords of `kernels.compiler.compiled.report`."""
        return {name: getattr(self, name) for name in SETTINGS if name in taken(self.kernel)}

    def _ask(self, change=None):
        """Compile what is set, in the background; what is still compiled for other settings is not waited for."""
        with self._lock:
            if change and self.settings == self._asked:  # a message may change several at once
                return
            if self._job:
                self._job.cancel(self._background.PATIENCE)
            self._asked = self.settings
            self._job = job = self._background.Job(self._asked, self._finish)
            self._jobs = [*filter(threading.Thread.is_alive, self._jobs), job]
            job.start()
        job.join(AT_ONCE)
        with self._lock:
            if job is self._job:
                self.work = self._status("compiling", job)

    def _finish(self, job):
        with self._lock:
            if job is self._job:  # nothing newer was asked for
                self._job = None
                self._show(job)

    def _show(self, job):
        self.failed = str(job.error) if job.error else ""
        if job.error:
            self.work = self._status("failed", job)
            return
        self.report = job.report
        self._shown += 1
        with self.hold_sync():
            self.result = numbers.compute(job.report) | {"asked": job.settings, "number": self._shown}
            self.work = self._status("done", job)

    def _status(self, state, job):
        status = {"state": state, "asked": job.settings, "words": words.asked(job.settings), "why": self.failed}
        return status | {"started": job.started, "took": job.took}

    def cancel(self) -> None:
        """End the process that compiles, if it is at work for this lab; what is shown stays."""
        with self._lock:
            for job in self._jobs:  # one that is not waited for any more has some patience left
                job.cancel()
            job, self._job = self._job, None
            if job:
                self.failed = "cancelled"
                self.work = self._status("cancelled", job)

    def wait(self) -> None:
        """Return when the last request is shown, or has failed."""
        while job := self._job:
            job.join()

    def close(self) -> None:
        self.cancel()
        super().close()

    def _hear(self, _, content, buffers):
        """Answer the page: it cancels, it asks again for the same, or it unfolds a listing."""
        if content["ask"] == "cancel":
            self.cancel()
        elif content["ask"] == "again":
            self._ask()
        elif self.report:
            text = numbers.whole(self.report, content["kind"])
            header = {"kind": content["kind"], "number": self._shown}
            self.send(header, buffers=[text.encode()])

    def figure(self) -> Picture:
        return figure.draw(self.result, self.failed)

    def _sizes(self):
        shown = words.summary(self.report) if self.report else ""
        if not self.failed:
            return shown
        return f"{self.failed}; what is shown is for {shown}" if shown else self.failed
