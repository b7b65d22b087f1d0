"""Wrong answers to the exercises of chapter 01."""

MUTANTS = []
