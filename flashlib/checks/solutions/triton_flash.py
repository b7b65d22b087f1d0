"""Solutions of chapter 10."""
