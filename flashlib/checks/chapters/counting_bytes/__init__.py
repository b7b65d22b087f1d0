"""Chapter 07."""
