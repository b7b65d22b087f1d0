"""What stands in for every launch in the process that compiles: the kernel is compiled, and not run."""

import io
from typing import Any, NoReturn

from flashlib.private_apis import of_compiler


class Enough(Exception):
    """The requested part is there."""


class Launches:
    """Stands in for every launch: compiles, and keeps what was compiled and with which arguments.

    name: of the one kernel that is compiled, since a call may launch several; None: the last is kept. names: of
    all that were launched. until: how far: "config", not at all; "ttgir"; else to the end. compile_options:
    those that only the compiler sees. log: what was printed while the kernel was compiled: ptxas's words.
    """

    def __init__(self) -> None:
        def compile_only(kernel, *args, grid, warmup, **options):
            self.names.append(kernel.__name__)
            if self.name not in (None, kernel.__name__):
                return
            self.options = dict(zip(kernel.arg_names, args, strict=False)) | options
            only_compiler = ((name, value) for name, value in options.items() if name not in kernel.arg_names)
            self.compile_options = sorted(only_compiler)
            if self.until == "config":
                raise Enough
            self.log.seek(self.log.truncate(0))  # ptxas speaks of one kernel, this one
            of_compiler.forget_compiled(kernel)  # else it is not compiled again, and ptxas says nothing
            self.compiled = run(kernel, *args, grid=grid, warmup=True, **options)

        run = of_compiler.replace_run(compile_only)

    def prepare(self, name: str | None, until: str) -> None:
        self.name: str | None = name
        self.names, self.until = [], until
        self.compiled = self.options = self.compile_options = None
        self.ttgir: Any = None
        self.log = io.StringIO()

    def stop(self, ttgir: object) -> NoReturn:
        """Take the place of what makes LLVM's code from TTGIR."""
        self.ttgir = str(ttgir)
        raise Enough
