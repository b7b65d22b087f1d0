"""The questions of chapter 09."""

QUESTIONS = []
