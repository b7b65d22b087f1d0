"""Python on the page: flashlib with NumPy, in Pyodide, in a worker that a page starts when it needs it.

`parts.py` writes the files that a browser fetches; `cells.py` says of each cell what it needs and whether it can
run there. `inside/` is the Python code that runs on the page; its JavaScript is in `web/page/live`.
"""
