"""A thread that compiles for CompilerLab, and can be cancelled."""

import atexit
import threading
import time
import weakref

from flashlib.kernels.compiler import client, compiled

PATIENCE = 2.5  # seconds, the time to start a process: one that has compiled longer is ended for a newer request


class CompileJob(threading.Thread):
    """Compiles one kernel; at the end it calls `done`, a function of the CompileJob, from its thread.

    settings: keywords of `compiled.report`. started: when, as time.time(), for the page. report: the Compiled, or
    None. error: the exception raised instead, or None. took: seconds, once it is done.
    """

    def __init__(self, settings, done=None):
        super().__init__(daemon=True, name="CompilerLab")
        self.settings, self._done, self._wanted = settings, done, client.Wanted()
        self.started, self.took, self._began = time.time(), 0.0, time.monotonic()
        self.report = self.error = None

    def compile(self) -> None:
        try:
            self.report = compiled.report(**self.settings)
        except Exception as error:  # whatever it is, the page must show it
            self.error = error
        self.took = time.monotonic() - self._began

    def run(self) -> None:
        RUNNING.add(self)
        client.WANTED.set(self._wanted)
        self.compile()
        self._done(self)

    def cancel(self, patience: float = 0) -> None:
        """End the compiling process as soon as it has run for `patience` seconds."""
        left = self._began + patience - time.monotonic()
        if left <= 0:
            self._wanted.cancel()
        else:
            timer = threading.Timer(left, self._wanted.cancel)
            timer.daemon = True
            timer.start()


RUNNING = weakref.WeakSet()


@atexit.register  # registered after `compiler`'s, so called before it
def _end():
    for job in list(RUNNING):
        job.cancel()
    for job in list(RUNNING):
        job.join(5)
