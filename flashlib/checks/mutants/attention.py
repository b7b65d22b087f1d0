"""Wrong answers to the exercises of chapter 04."""

MUTANTS = []
