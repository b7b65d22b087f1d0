r"""Execute a chapter and save it as a page that plays its widgets without a kernel and without a network.

The page is pages/05_one_pass.html, say; saved.js, which plays the widgets, must lie beside it. Where it cannot (no
JavaScript, no saved.js), a picture of each widget stands in its place. nbconvert alone does the same:

    .venv/bin/jupyter nbconvert --execute --to html --template tools/saved_page --output-dir pages \
        notebooks/05_one_pass.ipynb
    cp flashlib/widgets/saved.js pages/

Formulas stay TeX, to be read as text: no package that the course installs has a MathJax that a page could load.
"""

import argparse
import shutil
import sys
from pathlib import Path

from nbconvert import HTMLExporter

from tools import notebooks

ROOT = Path(__file__).resolve().parents[1]
TEMPLATE = ROOT / "tools" / "saved_page"
PLAYER = ROOT / "flashlib" / "widgets" / "saved.js"


def save(path, folder):
    """Execute the notebook at `path`, which stays as it is, save the page in `folder` and return the page's path.

    Raises ValueError if it is not a notebook, TimeoutError if it does not end, RuntimeError if a cell raises.
    """
    nb = notebooks.execute(notebooks.read(path), path.parent)
    if error := first_error(nb):
        raise RuntimeError(error)
    html = to_html(nb, path.stem)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(PLAYER, folder / PLAYER.name)
    page = folder / f"{path.stem}.html"
    page.write_text(html, encoding="utf-8")
    return page


def to_html(nb, name):
    """Return the text of the page of an executed notebook, whose title is `name` unless its metadata has one."""
    exporter = HTMLExporter(template_name=TEMPLATE.name, extra_template_basedirs=[str(TEMPLATE.parent)])
    return exporter.from_notebook_node(nb, {"metadata": {"name": name}})[0]


def first_error(nb):
    """Return a sentence on the first cell that raised and should not have, or None."""
    for number, cell in enumerate(nb.cells):
        if "raises-exception" in notebooks.tags(cell):
            continue
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                return f"cell {number} ({cell.id}) raised {output.ename}: {output.evalue}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chapter", help="for example 05")
    chapter = parser.parse_args().chapter
    if not chapter:
        sys.exit("No chapter was given: make page CHAPTER=05, for example")
    for path in notebooks.chapters(ROOT / "notebooks", chapter):
        print(f"{path.name} is being executed ...", flush=True)
        try:
            page = save(path, ROOT / "pages")
        except (OSError, ValueError, RuntimeError) as error:  # TimeoutError is an OSError
            sys.exit(f"{path.name} was not saved: {error}")
        print(f"Saved: {page.relative_to(ROOT)}, with {PLAYER.name} beside it. Open it in a browser.")


if __name__ == "__main__":
    main()
