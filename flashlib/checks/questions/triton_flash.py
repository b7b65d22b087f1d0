"""The questions of chapter 10."""

QUESTIONS = []
