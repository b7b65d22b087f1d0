"""Chapter 16: rings."""
