"""What was compiled once is not compiled again, here or in another process, until a source changes."""

import pytest

from flashlib.kernels import compiler

REQUEST = {"kernel": "softmax", "d": 16, "until": "sass"}


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """What a compiler was asked, all of them on one computer, without compiling."""
    asked = []

    def answer(self, request):
        asked.append(request["until"])
        return {"error": ["ValueError", "d is 0"]} if request["d"] == 0 else {"ptx": "add", "sass": "ADD"}

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiler.Compiler, "_answer", answer)
    monkeypatch.setattr(compiler.Compiler, "start", lambda self: None)
    return asked


def ask(**changed):
    return compiler.Compiler().ask(REQUEST | changed)


def test_an_answer_is_kept_for_the_next_process(asked):
    assert ask() == ask() and asked == ["sass"]
    ask(d=32)
    assert asked == ["sass"] * 2


def test_who_asked_for_sass_got_all_the_rest(asked):
    ask()
    assert ask(until="cubin") == {"ptx": "add", "sass": ""} and asked == ["sass"]
    ask(d=32, until="cubin")
    ask(d=32)
    assert asked == ["sass", "cubin", "sass"]


def test_it_is_asked_again_when_a_source_changes_or_triton_is_told_to_compile(asked, monkeypatch):
    ask()
    monkeypatch.setattr(compiler, "_sources", lambda: "edited")
    ask()
    assert asked == ["sass"] * 2
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    ask()
    assert asked == ["sass"] * 3


def test_a_process_that_read_older_sources_is_ended(asked, monkeypatch):
    mine, ended = compiler.Compiler(), []
    monkeypatch.setattr(compiler.Compiler, "stop", lambda self: ended.append(True))
    mine.ask(REQUEST)
    before = len(ended)
    monkeypatch.setattr(compiler, "_sources", lambda: "edited")
    mine.ask(REQUEST)
    assert len(ended) > before


def test_an_error_and_a_missing_listing_are_not_kept(asked, monkeypatch):
    assert ask(d=0) == ask(d=0) and asked == ["sass"] * 2
    with monkeypatch.context() as without_disassembler:
        without_disassembler.setattr(compiler.Compiler, "_answer", lambda *_: {"ptx": "add", "sass": ""})
        assert ask()["sass"] == ""
    assert ask()["sass"] == "ADD"


@pytest.mark.parametrize("source", ["kernels/forward.py", "kernels/compiling.py", "kernels/tiles.py", "state.py"])
def test_what_answers_depend_on_is_in_their_key(source, monkeypatch, tmp_path):
    before = compiler._sources()
    for path in (compiler.ROOT / "flashlib").rglob("*.py"):
        copy = tmp_path / path.relative_to(compiler.ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(compiler, "ROOT", tmp_path)
    assert compiler._sources() == before
    with (tmp_path / "flashlib" / source).open("a") as file:
        file.write("# edited\n")
    assert compiler._sources() != before
