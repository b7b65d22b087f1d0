"""Lists and counts, which another language may write in its own way."""

import pytest

from flashlib.language import phrases


@pytest.mark.parametrize("n", range(4))
def test_only_the_last_name_of_a_list_follows_a_word(n):
    names = ["dK", "dQ", "dV"][:n]
    texts = ["", "dK", "dK and dQ", "dK, dQ and dV"]
    assert phrases.and_list(names) == phrases.and_list(iter(names)) == texts[n]
    assert phrases.or_list(names) == texts[n].replace("and", "or")


def test_a_sentence_depends_on_how_many_there_are():
    assert [phrases.by_number(n, "it is", "they are") for n in (0, 1, 2)] == ["they are", "it is", "they are"]


def test_a_count_has_the_right_word():
    assert [phrases.counted(n, "copy", "copies") for n in (0, 1, 2)] == ["0 copies", "1 copy", "2 copies"]
    assert phrases.counted(1234, "byte", "bytes", ",") == "1,234 bytes"
