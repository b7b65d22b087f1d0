"""Tiling."""
