"""CompilerLab: choose a kernel, a tile and a GPU, and see what the compiler makes of them."""

import threading

import traitlets

from flashlib.pictures.canvas import Picture
from flashlib.widgets.compiler_lab import figure, kernel_facts, words
from flashlib.widgets.compiler_lab.choices import SETTINGS, as_builtins, offered, settings_of
from flashlib.widgets.widget import Widget, script, style

AT_ONCE = 0.15  # seconds: if a kernel compiled before takes no longer than this, "compiling" is not shown


class CompilerLab(Widget):
    """Registers, spills, shared memory, instructions and listings of a kernel, compiled on this computer.

    For GPUs of NVIDIA and AMD, in each maker's terms.

    The keywords are those of `kernels.compiler.compiled.report`; its kernels, backward passes included, are in a
    list. All can be set later, from Python or on the page: then a thread compiles, `wait` waits for it, `cancel`
    ends it, and the current report stays until there is a newer one. The constructor waits for the first report,
    as a cell waits for its result. report: the Compiled that is shown, or None. failed: why there is no report for
    the current settings, or "". `result` holds everything that is shown, `work` what the compiler is doing.
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
        self._lock, self._job, self._jobs = threading.RLock(), None, []  # the job that is waited for; all jobs
        self._asked, self._shown = None, 0
        if unknown := set(settings) - set(SETTINGS):
            raise TypeError(f"CompilerLab() got an unexpected keyword argument {sorted(unknown)[0]!r}")
        settings = SETTINGS | settings
        try:
            from flashlib.widgets.compiler_lab import background  # no Triton for this system: the error says so
        except ImportError as error:
            super().__init__(problem=str(error))
            return
        self._background = background
        first = background.CompileJob(settings)
        first.compile()
        if isinstance(first.error, (TypeError, ValueError)):
            super().__init__(problem=str(first.error))
            return
        super().__init__(**as_builtins(settings), offered=offered())
        self._asked = first.settings = self.settings
        self._show(first)
        self.observe(self._ask, names=list(SETTINGS))
        self.on_msg(self._hear)

    @property
    def settings(self) -> dict:
        """The settings that the kernel takes, as keywords of `kernels.compiler.compiled.report`."""
        return {name: getattr(self, name) for name in SETTINGS if name in settings_of(self.kernel)}

    def _ask(self, change=None):
        """Compile with the current settings in the background, and stop waiting for jobs with earlier ones."""
        with self._lock:
            if change and self.settings == self._asked:  # a message may change several settings at once
                return
            if self._job:
                self._job.cancel(self._background.PATIENCE)
            self._asked = self.settings
            self._job = job = self._background.CompileJob(self._asked, self._finish)
            self._jobs = [*filter(threading.Thread.is_alive, self._jobs), job]
            job.start()
        job.join(AT_ONCE)
        with self._lock:
            if job is self._job:
                self.work = self._status("compiling", job)

    def _finish(self, job):
        with self._lock:
            if job is self._job:  # nothing newer was requested
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
            self.result = kernel_facts.compute(job.report) | {"asked": job.settings, "number": self._shown}
            self.work = self._status("done", job)

    def _status(self, state, job):
        what = words.settings_in_words(job.settings)
        status = {"state": state, "asked": job.settings, "words": what, "why": self.failed}
        return status | {"started": job.started, "took": job.took}

    def cancel(self) -> None:
        """End the compiling process if it is working for this lab; the current report stays."""
        with self._lock:
            for job in self._jobs:  # a job that is no longer waited for may have some patience left
                job.cancel()
            job, self._job = self._job, None
            if job:
                self.failed = "cancelled"
                self.work = self._status("cancelled", job)

    def wait(self) -> None:
        """Wait until the last request is shown or has failed."""
        while job := self._job:
            job.join()

    def close(self) -> None:
        self.cancel()
        super().close()

    def _hear(self, _, content, buffers):
        """Respond to the page: it cancels, requests the same again, or unfolds a listing."""
        if content["ask"] == "cancel":
            self.cancel()
        elif content["ask"] == "again":
            self._ask()
        elif self.report:
            text = kernel_facts.whole(self.report, content["kind"])
            header = {"kind": content["kind"], "number": self._shown}
            self.send(header, buffers=[text.encode()])

    def figure(self) -> Picture:
        return figure.draw(self.result, self.failed)

    def _sizes(self):
        shown = words.summary(self.report) if self.report else ""
        if not self.failed:
            return shown
        return f"{self.failed}; what is shown is for {shown}" if shown else self.failed
