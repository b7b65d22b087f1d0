"""Text to tokens and back: bytes, so that any text can be a prompt, or the characters of one text."""

from collections.abc import Iterable

import torch


def encode(text: str) -> list:
    """Return the tokens of a text, which are its bytes in UTF-8."""
    return list(text.encode())


def decode(tokens: Iterable[int]) -> str:
    """Return the text of tokens below 256; bytes that are not UTF-8 become the replacement character."""
    return bytes(tokens).decode(errors="replace")


def encode_characters(text: str) -> tuple[torch.Tensor, list[str]]:
    """Return a text as a tensor of numbers with one axis, and its alphabet: alphabet[number] is the character."""
    alphabet = sorted(set(text))
    numbers = {character: number for number, character in enumerate(alphabet)}
    return torch.tensor([numbers[character] for character in text], dtype=torch.int64, device="cpu"), alphabet
