"""The questions of chapter 06."""

QUESTIONS = []
