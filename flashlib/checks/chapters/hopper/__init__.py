"""Chapter 13."""
