"""Chapter 06."""
