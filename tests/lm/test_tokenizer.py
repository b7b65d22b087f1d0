"""Text becomes tokens and comes back."""

from flashlib.lm import tokenizer


def test_text_is_bytes():
    assert tokenizer.decode(tokenizer.encode("ROMEO: où? 你")) == "ROMEO: où? 你"
    assert tokenizer.decode(n for n in [104, 105, 200]) == "hi�"


def test_characters_are_numbers():
    tokens, alphabet = tokenizer.encode_characters("abba c")
    assert alphabet == [" ", "a", "b", "c"] and tokens.tolist() == [1, 2, 2, 1, 0, 3]
