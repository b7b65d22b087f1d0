"""Rings."""
