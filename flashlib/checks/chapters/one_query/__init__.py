"""One query."""
