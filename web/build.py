"""The site: every chapter as a page, made from the notebooks as they are stored, into a folder."""

import base64
import copy
import functools
import hashlib
import json
import shutil
import tomllib
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import jinja2
from PIL import Image

from flashlib.chapters import FURTHER, PARTS
from flashlib.chapters import NOTEBOOKS as REGISTERED
from flashlib.widgets import modules
from tools import chapter_heads, minutes, notebooks
from web import chapter, colab, github, landing, pictures, prose, scripts, states, whole
from web.live import cells
from web.live import parts as live_parts

ROOT = Path(__file__).resolve().parents[1]
HERE = Path(__file__).parent
NOTEBOOKS = ROOT / "notebooks"
TITLE = "FlashAttention, from softmax to a GPU kernel"
SENTENCE = (
    "Most language models compute their attention with FlashAttention: the numbers of the textbook formula, up to "
    "rounding, without ever storing its large matrix, which has ten billion numbers for a text of 100,000 words. "
    "In this course you write it yourself."
)
# A page loads only its own files. A page opened as a file has no host, so the policy names files too.
POLICY = "default-src 'self' file:; img-src 'self' file: data:; style-src 'self' file: 'unsafe-inline'"
FIRST_FONT = HERE / "maths-first.woff2"  # see web/font.py
PREVIEW = ROOT / "docs" / "player-light.webp"


class Site(NamedTuple):
    """What all pages say. repository, address: those of the source and of the site, "" if there are none."""

    title: str
    sentence: str
    version: str
    repository: str
    address: str


class Made(NamedTuple):
    """A chapter, its notebook, its page.

    cells: what the page knows about each cell, None if the site has no Python; running: the cells that run there;
    kernels: whether they need Triton's interpreter.
    """

    chapter: tuple
    nb: dict
    page: chapter.Page
    cells: list | None
    running: list
    kernels: bool

    @property
    def lacks(self):
        """Why the first cell that cannot run on a page does not, in a sentence; "" if all can."""
        return next((cell["missing"] for cell in self.cells or () if cell["missing"]), "")


def build(folder, repository="", only=None, is_live=False):
    """Make the site in `folder`, replacing an old one; only: the numbers or names of chapters to make, if not all.

    is_live: whether Python runs on its pages, which needs Pyodide: see `web.live.parts`.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / "static" / "site.js").exists():
        raise FileExistsError(f"{folder} has other files in it: pass an empty folder, or one with a site")
    new = folder.with_name(f"{folder.name}.new")  # a build that fails leaves the site as it was
    shutil.rmtree(new, ignore_errors=True)
    made = write(new, repository, only, is_live)
    shutil.rmtree(folder, ignore_errors=True)
    new.rename(folder)
    return made


def write(folder, repository, only, is_live):
    """Write the site to a new folder."""
    if is_live:
        live_parts.check(live_parts.folder())
    has_kernels = is_live and not live_parts.no_kernels()
    static = folder / "static"
    shutil.copytree(HERE / "static", static)
    site = Site(TITLE, SENTENCE, version(), repository.rstrip("/"), github.pages(repository))
    made = [made_of(one, static, site.repository, is_live, has_kernels) for one in chosen(only)]
    write_scripts(static, made)
    write_first_font(static)
    write_preview(static)
    colab.write(folder / colab.BRANCH, [(one.chapter, one.nb) for one in made], site.repository)
    pages = Pages(folder, site, [one.chapter for one in made], is_live)
    if is_live:
        live = write_live(static, pages, made)
        pages.packed = live["packed"]
        pages.env.globals.update(pyodide=live_parts.version(), python_size=megabytes(pages.packed))
        pages.env.globals.update(kernels_size="".join(megabytes(one.packed) for one in pages.of_kernels))
    numbered = [one for one in made if one.chapter.number]
    for before, one, after in zip([None, *numbered], numbered, [*numbered[1:], None], strict=False):
        pages.chapter(one, before, after)
    for one in made[len(numbered) :]:
        pages.chapter(one, None, None)
    pages.index(made)
    pages.write("offline.html", "offline.html.j2", mistake="Offline: ", parts=pages.parts)
    files = [*whole.files(folder), ["about.html", 0]]
    (static / "files.json").write_text(json.dumps(files), encoding="utf-8")
    all_size = megabytes(sum(size for _, size in files))
    owned = github.owned(site.repository)
    pages.write("about.html", "about.html.j2", mistake="About", colab=owned, all_size=all_size)
    shutil.copyfile(HERE / "page" / "offline.js", folder / "offline.js")  # it serves only what is below it
    pages.write("404.html", "404.html.j2", home=urlsplit(site.address).path)
    (folder / ".nojekyll").touch()  # GitHub would look for templates
    return made


def chosen(only):
    """Return the chapters with these numbers or names, or all."""
    known = {key: one for one in REGISTERED for key in (one.number or one.name, one.name)}
    wanted = [*known] if only is None else [key.zfill(2) for key in only]
    if unknown := sorted({*wanted} - {*known}):
        accepted = ", ".join(one.number or one.name for one in REGISTERED)
        raise ValueError(f"there is no chapter {unknown[0]!r}; there are {accepted}")
    return [one for one in REGISTERED if one in [known[key] for key in wanted]]


def made_of(one, static, repository="", is_live=False, has_kernels=False):
    """Write the pictures of a chapter, and return it with its notebook and its page."""
    nb = notebooks.read(NOTEBOOKS / f"{one.slug}.ipynb")
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            cell.source = colab.opening(cell.source, repository, one.slug)
    shown = states.of_chapter(nb.cells, NOTEBOOKS, functools.partial(write_record, static / "recorded"))
    told, kernels = cells.of_page(one, nb.cells, has_kernels) if is_live else (None, False)
    running = cells.running(nb.cells, told) if told else []
    about = {cell["id"]: cell for cell in told} if running else None
    writer = chapter.Writer(shown, pictures.Pictures(static / "pictures"), repository, about)
    return Made(one, nb, writer.write(nb.cells), told, running, kernels)


def write_record(folder, record):
    """Write the recorded settings of a widget; several widgets may share them."""
    folder.mkdir(exist_ok=True)
    (folder / f"{record.name}.js").write_text(record.text, encoding="utf-8")


def version():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def write_scripts(static, made):
    """Write the scripts: the site's own, those of the widgets, the list of chapters, the words to search."""
    (static / "widgets").mkdir()
    for name, text in scripts.files().items():
        (static / "widgets" / name).write_text(text, encoding="utf-8")
    shutil.copyfile(HERE / "page" / "theme.js", static / "theme.js")
    text = modules.join(HERE / "page" / "main.js")
    (static / "site.js").write_text(f'"use strict";\n(() => {{\n{text}\n}})();\n', encoding="utf-8")
    chapters = [
        {"slug": one.chapter.slug, "cards": one.page.cards, "exercises": one.page.exercises} for one in made
    ]
    write_value(static / "course.js", "chapters", chapters)
    write_value(static / "search-index.js", "index", [entry for one in made for entry in entries(one)])


def write_live(static, pages, made):
    """Write the files that Python on a page needs; return what a page needs to know about them."""
    found = live_parts.write(static / "live")
    pages.of_kernels = [live_parts.write_kernels(static / "live")] if any(one.kernels for one in made) else []
    shutil.copyfile(HERE / "page" / "worker.js", static / "worker.js")
    about = {
        "worker": pages.file("worker.js"),
        "parts": pages.files(found),
        "packed": sum(one.packed for one in found),
        "slower": live_parts.SLOWER,
        "sheet": pages.file(f"widgets/{scripts.SHARED}"),
        "widgets": {
            name: [pages.file(f"widgets/{name}.{kind}") for kind in ("js", "css")] for name in scripts.classes()
        },
    }
    write_value(static / "live.js", "live", about)
    (static / "notebooks").mkdir()
    for one in made:
        if one.running:
            path = static / "notebooks" / f"{one.chapter.slug}.ipynb"
            path.write_text(notebooks.to_text(without_outputs(one.nb)), encoding="utf-8")
    return about


def without_outputs(nb):
    """Return a copy of a notebook without outputs."""
    nb = copy.deepcopy(nb)
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return nb


def write_value(path, name, value):
    """Write a script that contains a value, since a page opened as a file cannot fetch one."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    path.write_text(f"flashSite.{name} = {text};\n", encoding="utf-8")


def entries(made):
    """Yield a chapter's entries for the search: [kind, address, chapter, heading, words], see page/find.js."""
    address, title = f"{made.chapter.slug}.html", made.chapter.heading
    (_, _, begins), *sections = made.page.words
    yield ["chapter", address, title, made.chapter.idea.replace("`", ""), begins.strip()]
    for anchor, heading, words in sections:
        yield ["section", f"{address}#{anchor}", title, heading, words.strip()]
    for anchor, term, meaning in made.page.terms:
        yield ["term", f"{address}#{anchor}", "Glossary", term, meaning]


def write_first_font(static):
    """Write the script with the font of formulas in lines of text."""
    data = base64.b64encode(FIRST_FONT.read_bytes()).decode()
    text = (HERE / "page" / "formulas.js").read_text(encoding="utf-8")
    (static / "formulas.js").write_text(text.replace("FIRST", data), encoding="utf-8")


def write_preview(static):
    """Write the picture that other sites show next to a link: the player at work."""
    with Image.open(PREVIEW) as film:
        film.seek(film.n_frames // 3)
        film.convert("RGB").save(static / "preview.jpg", quality=80)


class Pages:
    """Writes the pages of a site."""

    def __init__(self, folder, site, chapters, is_live=False):
        self.folder, self.site = folder, site
        self.parts, self.is_live = parts(chapters), is_live
        self.of_kernels = []  # the Parts that only pages with kernels need
        self.packed = 0  # bytes of the Parts that all pages with Python need
        self.env = jinja2.Environment(
            loader=jinja2.FileSystemLoader(HERE / "templates"),
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )
        self.env.globals.update(site=site, policy=POLICY, file=self.file, chapter=None)
        self.env.globals.update(sheets=[], scripts=[], mistake="", is_live=is_live, cells="")

    def file(self, name):
        """Return the address of a file that all pages share; it changes with the file, so no cache is outdated."""
        content = (self.folder / "static" / name).read_bytes()
        return f"static/{name}?{hashlib.sha256(content).hexdigest()[:8]}"

    def files(self, of_python):
        """Return what a page needs to know about files for Python, for the worker that fetches them."""
        return [one._asdict() | {"url": f"../{self.file(f'live/{one.name}')}"} for one in of_python]

    def write(self, name, template, **values):
        text = self.env.get_template(template).render(**values)
        (self.folder / name).write_text(text, encoding="utf-8")

    def chapter(self, made, before, after):
        one, page = made.chapter, made.page
        own = self._own(made)
        self.write(
            f"{one.slug}.html", "chapter.html.j2",
            chapter=one, page=page, parts=self.parts, colab=colab.link(self.site.repository, one.slug),
            line=head_line(made),
            before=before and before.chapter, after=after and after.chapter,
            lacks=made.lacks, kernels=made.kernels,
            few=2 * len(made.running) < len(made.cells or ()),
            checks=any(cells.exercise_of(cell) for cell in made.running),
            size=megabytes(self.packed + sum(part.packed for part in own)),
            mistake=f"{one.number or one.title}: ", cells=self._cells(made, own), **playing(page.widgets),
        )  # fmt: skip

    def _own(self, made):
        """Return the Parts that the Python of a page needs and other pages may not."""
        if not made.running:
            return []
        data = live_parts.write_data(self.folder / "static" / "live", made.running)
        return self.of_kernels * made.kernels + data

    def _cells(self, made, own):
        """Return what the page of a chapter knows about its cells, as JSON; "" if none runs there."""
        if not made.running:
            return ""
        slug = made.chapter.slug
        notebook = self.file(f"notebooks/{slug}.ipynb")
        return in_page({"chapter": slug, "notebook": notebook, "cells": made.cells, "own": self.files(own)})

    def index(self, made):
        """Write the first page."""
        static = self.folder / "static"
        write_value(static / "mended.js", "mended", landing.mended())
        loop = landing.loop(pictures.Pictures(static / "pictures"), self.file("mended.js"))
        about = {"chapter": "", "notebook": "", "cells": landing.cells_of_page(), "own": []}
        self.write(
            "index.html", "index.html.j2",
            loop=loop | {"about": in_page(loop["about"])}, cells=in_page(about) if self.is_live else "",
            route=landing.route(made), hours=landing.hours(made), measured=landing.measured(),
            measured_in=landing.measured_in(made),
            electives=landing.electives(made), **playing({landing.PLAYED: landing.played(landing.WRONG).player}),
        )  # fmt: skip


def megabytes(size):
    return f"{size / 1e6:.1f}"


def playing(widgets):
    """Return what a page needs to play these widgets: their state, scripts and style sheets."""
    names = sorted({one["class"] for one in widgets.values()})
    text = in_page(widgets)
    sheets = [scripts.SHARED] * bool(names) + [f"{name}.css" for name in names]
    return {"states": text, "sheets": sheets, "scripts": [f"{name}.js" for name in names]}


def in_page(value):
    """Return JSON escaped for a page."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")


def parts(chapters):
    """Return the chapters of each part: [(title of a part, its chapters)], and last the further pages."""
    found = [(part, [one for one in chapters if one.part == part]) for part in (*PARTS, FURTHER)]
    return [(part, of_part) for part, of_part in found if of_part]


def head_line(made):
    """Return the HTML of the line that says how long a chapter takes, what it builds on and where it runs."""
    if made.nb is None:
        return ""
    text = chapter_heads.line(made.chapter, minutes.of(made.nb), bool(made.running)).strip("*")
    return prose.to_html(text)[0].strip().removeprefix("<p>").removesuffix("</p>")
