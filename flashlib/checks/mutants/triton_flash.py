"""Wrong answers to the exercises of chapter 10."""

MUTANTS = []
