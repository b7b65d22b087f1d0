"""Python on the page: flashlib with NumPy, in Pyodide, in a worker that a page starts when it needs it.

`parts.py` writes the files that a browser fetches; `lacking.py` says which modules a page lacks, and `cells.py` of
each cell what it needs and whether it can run there. For the pages of chapters with kernels, `kernel_files.py`
collects Triton's own Python and the stand-ins of `stand_ins/`; `beside.py` loads these where the real ones are.
`inside/` is the Python code that runs on the page; its JavaScript is in `web/page/live`.
"""
