"""An answer, its cases, its verdict."""
