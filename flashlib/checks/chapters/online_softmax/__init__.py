"""Chapter 03."""
