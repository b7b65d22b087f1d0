"""Replaces every launch in the process that compiles: the kernel is compiled and not run."""

import io
from typing import Any, NoReturn

from flashlib.private_apis import of_compiler


class Enough(Exception):
    """Raised to stop the compiler once the requested part is available."""


class CompilingLauncher:
    """Replaces every launch: compiles the kernel, and keeps the result and its arguments.

    name: of the kernel to compile, since a call may launch several; None keeps the last. names: of all kernels
    launched. until: how far to compile: "config", not at all; "ttgir"; else to the end. compile_options: those
    that only the compiler sees. log: what ptxas printed while the kernel was compiled.
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
            self.log.seek(self.log.truncate(0))  # so that the log is about this kernel only
            of_compiler.forget_compiled(kernel)  # else it is not compiled again, and ptxas prints nothing
            self.compiled = run(kernel, *args, grid=grid, warmup=True, **options)

        run = of_compiler.replace_run(compile_only)

    def prepare(self, name: str | None, until: str) -> None:
        self.name: str | None = name
        self.names, self.until = [], until
        self.compiled = self.options = self.compile_options = None
        self.ttgir: Any = None
        self.log = io.StringIO()

    def stop(self, ttgir: object) -> NoReturn:
        """Replaces the compiler's step from TTGIR to LLVM's code."""
        self.ttgir = str(ttgir)
        raise Enough
