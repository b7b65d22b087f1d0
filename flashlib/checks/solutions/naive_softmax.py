"""Solutions of chapter 01."""
