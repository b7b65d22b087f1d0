"""A thread that compiles for CompilerLab, and can be told that nobody waits any more."""

import atexit
import threading
import time
import weakref

from flashlib.kernels import compiled, compiler

PATIENCE = 2.5  # seconds: what takes longer is ended for a newer request; a new process takes as long to start


class Job(threading.Thread):
    """Compiles one kernel; `done`, a function of the Job, is called at the end, from its thread.

    settings: keywords of `compiled.report`. started: when, as time.time(). report: the Compiled, or None. error:
    the exception in its place, or None. took: seconds, when it is done.
    """

    def __init__(self, settings, done=None):
        super().__init__(daemon=True, name="CompilerLab")
        self.settings, self._done, self._wanted = settings, done, compiler.Wanted()
        self.started, self.took = time.time(), 0.0
        self.report = self.error = None

    def compile(self):
        try:
            self.report = compiled.report(**self.settings)
        except Exception as error:  # whatever it is, the page must say it
            self.error = error
        self.took = time.time() - self.started

    def run(self):
        RUNNING.add(self)
        compiler.WANTED.set(self._wanted)
        self.compile()
        self._done(self)

    def cancel(self, patience=0):
        """End the process that compiles, as soon as it has run for `patience` seconds."""
        if patience <= time.time() - self.started:
            self._wanted.cancel()
        else:
            timer = threading.Timer(self.started + patience - time.time(), self._wanted.cancel)
            timer.daemon = True
            timer.start()


RUNNING = weakref.WeakSet()


@atexit.register  # after `compiler`'s: called before it
def _end():
    for job in list(RUNNING):
        job.cancel()
    for job in list(RUNNING):
        job.join(5)
