"""Chapter 05."""
