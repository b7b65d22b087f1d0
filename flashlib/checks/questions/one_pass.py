"""The questions of chapter 05."""

QUESTIONS = []
