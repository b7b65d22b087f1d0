"""Chapter 18: eight bits."""
