"""The first results of searches in the whole course."""

import json
import subprocess
from types import SimpleNamespace

import pytest

pytest.importorskip("latex2mathml")
pytest.importorskip("nbconvert")

from flashlib.chapters import CHAPTERS
from tests.required import ROOT, node
from tools import notebooks
from web import build, chapter

# A search, and the address of the first result, or its beginning.
FIRST = {
    "online softmax": "03_online_softmax.html",
    "flashattention": "05_one_pass.html",
    "flash attention": "05_one_pass.html",
    "attention": "04_attention.html",
    "hopper": "13_hopper.html",
    "ring": "16_rings.html",
    "backward": "08_backward.html",
    "warp": "00_start_here.html#term-warp",
    "tensor core": "00_start_here.html#term-tensor-core",
    "causal": "00_start_here.html#term-causal-mask",
    "alpha": "00_start_here.html#term-alpha",
    "KV cache": "00_start_here.html#term-KV-cache",
    **dict.fromkeys(["split-K", "splitk", "flash decoding"], "00_start_here.html#term-split-K"),
    **dict.fromkeys(["GQA", "grouped-query attention", "MQA"], "00_start_here.html#term-MQA-GQA"),
    **dict.fromkeys(["warp specialization", "warp specialisation"], "00_start_here.html#term-warp-spec"),
    **dict.fromkeys(["paged attention", "PagedAttention"], "00_start_here.html#term-page-paged-attention"),
    **dict.fromkeys(["ping-pong", "pingpong", "ping pong"], "00_start_here.html#term-ping-pong"),
    **dict.fromkeys(["ring attention", "context parallelism"], "00_start_here.html#term-ring-attention"),
    "1/√d": "00_start_here.html#term-scale",
}
SLIPS = {"softmx": "softmax", "flash attentoin": "flash attention", "casual": "causal", "qunatise": "quantise"}
ASK = f"""
import {{ found, meant }} from {json.dumps((ROOT / "web/page/find.js").as_uri())};
import {{ readFileSync }} from "node:fs";
const [index, asked, slips] = JSON.parse(readFileSync(0, "utf-8"));
const first = asked.map((words) => found(index, words)[0]?.[1] ?? "");
console.log(JSON.stringify([first, slips.map((words) => found(index, words).length ? "" : meant(index, words))]));
"""


@pytest.fixture(scope="module")
def index():
    """The index, made from the texts of all chapters."""
    found = []
    for one in CHAPTERS:
        cells = notebooks.read(ROOT / "notebooks" / f"{one.slug}.ipynb").cells
        texts = [cell for cell in cells if cell.cell_type == "markdown"]
        page = chapter.Writer({}, None, "").write(texts)
        found += build.entries(SimpleNamespace(chapter=one, page=page))
        anchors = [anchor for anchor, *_ in [*page.words[1:], *page.terms]]
        assert [anchor for anchor in anchors if f'id="{anchor}"' not in page.body] == []
    return found


def test_the_first_result_is_the_right_one(index):
    command = [node(), "--input-type=module", "--eval", ASK]
    given = json.dumps([index, [*FIRST], [*SLIPS]])
    done = subprocess.run(command, input=given, capture_output=True, text=True, encoding="utf-8", check=True)
    first, mended = json.loads(done.stdout)
    wrong = {asked: found for asked, found in zip(FIRST, first, strict=True) if not found.startswith(FIRST[asked])}
    assert wrong == {}
    assert dict(zip(SLIPS, mended, strict=True)) == SLIPS


def test_each_term_of_the_glossary_is_found_in_its_own_row(index):
    terms = [entry for entry in index if entry[0] == "term"]
    assert len(terms) > 40 and len({address for _, address, *_ in terms}) == len(terms)
    assert all(heading and text for _, _, _, heading, text in terms)
    (glossary,) = [entry for entry in index if entry[3].startswith("Glossary")]
    assert "grouped" not in glossary[4]
