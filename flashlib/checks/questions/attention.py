"""The questions of chapter 04."""

QUESTIONS = []
