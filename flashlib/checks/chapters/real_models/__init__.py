"""Real models."""
