"""Wrong answers to the exercises of chapter 02."""

MUTANTS = []
