"""Chapter 10."""
