"""ProgramsLab: the programs of a kernel, and which elements each of them loads, masks and stores."""

import traitlets

from flashlib.pictures.canvas import Picture
from flashlib.widgets.lab import Lab
from flashlib.widgets.programs_lab import choices, drawn_accesses, figure, kernels, numpy_run, own_kernel
from flashlib.widgets.widget import script, style


class ProgramsLab(Lab):
    """Show, for each program of a kernel, the elements that it loads, masks and stores, with their offsets.

    kernel: "vector" (the sum of two vectors of N elements), "tile" (a matrix of N rows and 6 columns, copied in
    tiles of BLOCK x BLOCK), "softmax" (a program takes a row at once) or "loop" (a program adds up a row, BLOCK
    columns in each turn). stride_r, stride_c: from one row of the matrix to the next, and from one column to the
    next. mask: whether the kernel has its mask. transposed: whether "tile" copies to a transposed matrix. These
    kernels run in NumPy, from the lines that are shown. Their settings can be changed later, from Python or on the
    page; a value that is not accepted then changes nothing and is answered in `refused`.

    Or a kernel of your own, with its arguments, its grid and its constants: ProgramsLab(my_kernel, x, y, 10,
    grid=(3,), BLOCK=4). Triton's interpreter runs it in another process, with limits, and what it loads and stores
    is recorded: the first 256 programs. `result` holds all that is shown.
    """

    _esm = script("programs_lab/programs_lab.js")
    _css = style("programs_lab/programs_lab.css")

    kernel = traitlets.Unicode().tag(sync=True)
    N = traitlets.Int().tag(sync=True)
    BLOCK = traitlets.Int().tag(sync=True)
    stride_r = traitlets.Int().tag(sync=True)
    stride_c = traitlets.Int().tag(sync=True)
    mask = traitlets.Bool().tag(sync=True)
    transposed = traitlets.Bool().tag(sync=True)
    result = traitlets.Dict().tag(sync=True)

    def __init__(self, kernel="vector", *arguments, grid=None, **settings):
        own = None if isinstance(kernel, str) else (kernel, arguments, grid, settings)
        if own:
            return super().__init__({}, own=own)
        if unknown := settings.keys() - choices.DEFAULTS.keys():
            raise TypeError(f"ProgramsLab() got an unexpected keyword argument {sorted(unknown)[0]!r}")
        if arguments or grid is not None:
            raise TypeError(f"kernel is {kernel!r}, which takes no arguments and no grid; pass a kernel with them")
        super().__init__(choices.DEFAULTS | {"kernel": kernel} | settings, own=None)

    def _take(self, own):
        self._own = own and own_kernel.run(*own)

    _checked = staticmethod(choices.checked)

    def _used(self, setting):
        return {"kernel", *kernels.KERNELS[setting["kernel"]].settings}

    def _computed(self, setting):
        if self._own:
            run, said = self._own
            return {
                "setting": {},
                "used": [],
                "kernels": [],
                "stops": {},
                "said": said,
                **drawn_accesses.compute(run),
            }
        return {
            **{"setting": setting, "used": list(kernels.KERNELS[setting["kernel"]].settings)},
            "kernels": [[name, kernel.label, kernel.title] for name, kernel in kernels.KERNELS.items()],
            **{"stops": choices.STOPS, "said": []},
            **drawn_accesses.compute(numpy_run.run(kernels.launch(setting))),
        }

    def figure(self) -> Picture:
        return figure.draw(self.result)

    def _sizes(self):
        r = self.result
        setting = ", ".join(f"{name}={r['setting'][name]!r}" for name in ["kernel", *r["used"]] if r["setting"])
        return f"{setting or r['launch']}: {drawn_accesses.summary(r)}"
