"""Roofline."""
