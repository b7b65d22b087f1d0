"""Solutions of chapter 03."""
