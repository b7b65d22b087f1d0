"""Wrong answers to the exercises of chapter 03."""

MUTANTS = []
