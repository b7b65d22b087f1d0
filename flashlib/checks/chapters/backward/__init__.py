"""Backward."""
