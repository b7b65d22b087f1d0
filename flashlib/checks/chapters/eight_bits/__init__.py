"""Eight bits."""
