"""Python in the page: flashlib itself, with NumPy, in Pyodide, in a worker that a page starts when it is needed.

`parts.py` writes the files that a browser fetches; `cells.py` says of each cell what it needs and whether it can
run there. `inside/` is Python that runs in the page; the page's own half is `web/page/live`.
"""
