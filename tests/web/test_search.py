"""The first results of searches in the whole course."""

import json
import subprocess
from types import SimpleNamespace

import pytest

pytest.importorskip("latex2mathml")
pytest.importorskip("nbconvert")

from flashlib.chapters import NOTEBOOKS, named
from tests.required import ROOT, node
from tools import notebooks
from web import build, chapter

# A search, and the address of the first result, or its beginning.
FIRST = {
    **{
        asked: f"{named(name).slug}.html"
        for asked, name in [
            ("online softmax", "online_softmax"),
            ("flashattention", "one_pass"),
            ("flash attention", "one_pass"),
            ("attention", "attention"),
            ("hopper", "hopper"),
            ("ring", "rings"),
            ("roofline", "roofline"),
            ("backward", "backward"),
        ]
    },
    "warp": "glossary.html#term-warp",
    "tensor core": "glossary.html#term-tensor-core",
    "causal": "glossary.html#term-causal-mask",
    "alpha": "glossary.html#term-alpha",
    "KV cache": "glossary.html#term-KV-cache",
    **dict.fromkeys(["split-K", "splitk", "flash decoding"], "glossary.html#term-split-K"),
    **dict.fromkeys(["GQA", "grouped-query attention", "MQA"], "glossary.html#term-MQA-GQA"),
    **dict.fromkeys(["warp specialization", "warp specialisation"], "glossary.html#term-warp-spec"),
    **dict.fromkeys(["paged attention", "PagedAttention"], "glossary.html#term-page-paged-attention"),
    **dict.fromkeys(["ping-pong", "pingpong", "ping pong"], "glossary.html#term-ping-pong"),
    **dict.fromkeys(["ring attention", "context parallelism"], "glossary.html#term-ring-attention"),
    **dict.fromkeys(["arithmetic intensity"], "glossary.html#term-arithmetic-intensity"),
    **dict.fromkeys(["TMA", "wgmma"], "glossary.html#term-TMA-wgmma"),
    "1/√d": "glossary.html#term-scale",
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
    for one in NOTEBOOKS:
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
    assert {address.partition("#")[0] for _, address, *_ in terms} == {f"{named('glossary').slug}.html"}
    others = [entry for entry in index if entry[2] == "Glossary" and entry[0] != "term"]
    assert others and not any("grouped" in entry[4] for entry in others)
