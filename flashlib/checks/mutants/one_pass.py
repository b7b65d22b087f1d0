"""Wrong answers to the exercises of chapter 05."""

MUTANTS = []
