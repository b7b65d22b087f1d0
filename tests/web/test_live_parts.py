"""The files that Python on a page needs: which page fetches which, their sizes, and that they are complete."""

import json
import shutil
import subprocess
import zipfile
from types import SimpleNamespace

import pytest

pytest.importorskip("traitlets")

from flashlib.chapters import CHAPTERS, named  # noqa: E402
from tests.required import missing, node  # noqa: E402
from tests.web import live_chapters, page_python  # noqa: E402
from web.live import cells, kernel_files, lacking, parts  # noqa: E402

FIRST = [one for one in CHAPTERS if one.number <= "05"]
BEFORE = 9_724_133  # bytes that a page fetched for Python before any page had kernels
COURSE_BEFORE = 994_084  # those of the course among them
MORE = 1.01
KERNELS = 360_000  # bytes at most of the part with kernels
# Imports each module of flashlib that its input names.
IMPORTS = """
from web.live.inside import stand_ins
stand_ins.install()
import importlib
for name in json.loads(sys.stdin.read()):
    importlib.import_module(name)
print(json.dumps([*sys.modules]))
"""
# Runs the kernel of a page in Pyodide: each question is a line, and so is each answer.
PYODIDE = """
import { readFileSync } from "node:fs";
const [place, ...files] = process.argv.slice(2);
const { loadPyodide } = await import(`${place}/pyodide.mjs`);
let given = "";
for await (const part of process.stdin) given += part;
const [cells, ...questions] = given.trim().split("\\n");
const python = await loadPyodide({ indexURL: place, packages: ["numpy"] });
const site = "/lib/python3.12/site-packages";
python.FS.mkdirTree(`${site}/notebooks/data`);
for (const path of files) {
  const bytes = new Uint8Array(readFileSync(path));
  if (path.endsWith(".zip")) python.unpackArchive(bytes, "zip", { extractDir: site });
  else python.FS.writeFile(`${site}/notebooks/data/${path.split("/").at(-1)}`, bytes);
}
python.FS.chdir(`${site}/notebooks`);
const page = python.pyimport("web.live.inside.kernel").begin(cells, () => {}, () => {});
for (const question of questions) console.log(page.ask(question).toJs()[0]);
process.exit(0);
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The archives that pages fetch, {name: Part}, and the folder that they are in."""
    if lost := parts.no_kernels():
        missing(lost)
    place = tmp_path_factory.mktemp("parts")
    parts.write_course(place / parts.COURSE)
    return {part.name: part for part in (parts.part(place, parts.COURSE), parts.write_kernels(place))}, place


def test_the_pages_before_the_kernels_fetch_no_more_than_before(written):
    assert not any(live_chapters.told_of(one)[1] for one in FIRST)
    assert written[0][parts.COURSE].packed - COURSE_BEFORE <= (MORE - 1) * BEFORE


def test_the_part_with_kernels_is_small_and_has_the_licence(written):
    found, place = written
    assert found[parts.KERNELS].packed <= KERNELS
    with zipfile.ZipFile(place / parts.KERNELS) as archive, zipfile.ZipFile(place / parts.COURSE) as course:
        assert "Permission is hereby granted" in archive.read(kernel_files.LICENCE).decode()
        assert not {*archive.namelist()} & {*course.namelist()}


@pytest.mark.process
def test_every_module_of_the_part_with_kernels_can_be_imported(tmp_path):
    if lost := parts.no_kernels():
        missing(lost)
    site = page_python.unpacked(tmp_path, kernels=True)
    with zipfile.ZipFile(tmp_path / parts.KERNELS) as archive:
        names = [name for name in archive.namelist() if name.startswith("flashlib/")]
    modules = [parts.module_of(lacking.ROOT / name) for name in names]
    assert "flashlib.kernels.forward" in modules and len(modules) > 50
    loaded = json.loads(page_python.run(site, IMPORTS, json.dumps(modules)))
    assert {*modules} <= {*loaded}


def test_without_triton_the_site_is_made_without_kernels(monkeypatch):
    def refuse():
        raise kernel_files.NoTriton("Triton is not installed here")

    monkeypatch.setattr(kernel_files, "files", refuse)
    assert parts.no_kernels() == "Triton is not installed here"
    chapter = named("triton_first_steps")
    told, kernels = cells.of_page(chapter, live_chapters.read(chapter).cells, has_kernels=False)
    assert not kernels
    assert any(one["missing"] == "This cell needs torch, which does not run in a page." for one in told)


@pytest.mark.process
@pytest.mark.parametrize("name", ["triton_first_steps", "triton_flash"])
def test_kernels_print_in_pyodide_what_is_stored(written, tmp_path, name):
    try:
        parts.check(parts.folder())
    except parts.Missing as reason:
        missing(str(reason))
    pyodide = shutil.copytree(parts.folder(), tmp_path / "pyodide")  # package.json here would make it a module
    shutil.copy(lacking.ROOT / "node_modules" / "pyodide" / "pyodide.mjs", pyodide)
    (tmp_path / "run.mjs").write_text(PYODIDE, encoding="utf-8")
    chapter = named(name)
    told, _ = live_chapters.told_of(chapter)
    stored = {cell.id: cell for cell in live_chapters.read(chapter).cells if cell.cell_type == "code"}
    asked = [one["id"] for one in told if not one["missing"] and "checks." not in stored[one["id"]].source]
    sources = {id: cell.source for id, cell in stored.items()}
    questions = [{"do": "run", "cell": id, "sources": sources} for id in asked]
    parts.write_data(written[1], stored.values())
    files = [str(path) for path in written[1].rglob("*") if path.is_file()]
    ran = subprocess.run(
        [node(), str(tmp_path / "run.mjs"), str(pyodide), *files], capture_output=True, text=True,
        input="\n".join(map(json.dumps, [told, *questions])) + "\n",
    )  # fmt: skip
    assert not ran.returncode, ran.stderr[-2000:]
    for id, line in zip(asked, ran.stdout.splitlines(), strict=True):
        live_chapters.compare(json.loads(line), stored[id])


def test_a_record_that_a_cell_names_is_fetched_and_no_other_file(tmp_path):
    for source, names in (
        ('record("h200_ring")', ["data/h200_ring.json"]),
        (
            'Path("data/h200_ring_4.json"), "data/shakespeare.txt"',
            ["data/h200_ring_4.json", "data/shakespeare.txt"],
        ),
        ("from flashlib import lm", []),
    ):
        assert [part.name for part in parts.write_data(tmp_path, [SimpleNamespace(source=source)])] == names
