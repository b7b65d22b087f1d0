"""The questions of chapter 03."""

QUESTIONS = []
