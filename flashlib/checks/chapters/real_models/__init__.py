"""Chapter 17: real models."""
