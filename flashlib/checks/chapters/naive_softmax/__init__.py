"""Chapter 01."""
