"""Solutions of chapter 04."""
