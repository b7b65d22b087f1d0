"""Chapter 11."""
