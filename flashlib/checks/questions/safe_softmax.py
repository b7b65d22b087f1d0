"""The questions of chapter 02."""

QUESTIONS = []
