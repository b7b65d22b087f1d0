"""Solutions of chapter 02."""
