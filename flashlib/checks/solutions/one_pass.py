"""Solutions of chapter 05."""
