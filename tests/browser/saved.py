"""A page of the site with given cells, which tests open from disk."""

import os
import shutil
from unittest.mock import patch

import nbformat

from flashlib.chapters import CHAPTERS
from web import build, chapter, pictures, states


@patch.dict(os.environ)  # the cells run in this process, and may change it
def save(sources, folder):
    """Run the cells, write their page to `folder` like `make site`, and return its path."""
    cells, shown, space = [nbformat.v4.new_code_cell(text) for text in sources], {}, {}
    static = folder / "static"
    shutil.copytree(build.HERE / "static", static)
    for cell in cells:
        widget = states.run(cell.source, space, folder)
        if hasattr(widget, "_esm"):
            data, _ = widget._repr_mimebundle_()
            kept = {name: data[name] for name in ("text/plain", "image/png") if name in data}
            cell.outputs = [nbformat.v4.new_output("display_data", kept)]
            shown[cell.id] = states.for_page(widget)
    page = chapter.Writer(shown, pictures.Pictures(static / "pictures"), "").write(cells)
    build.write_scripts(static, [])
    build.write_first_font(static)
    site = build.Site(build.TITLE, build.SENTENCE, build.version(), "", "")
    build.Pages(folder, site, []).chapter(build.Made(CHAPTERS[0], None, page, None, [], False), None, None)
    return folder / f"{CHAPTERS[0].slug}.html"
