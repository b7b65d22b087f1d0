"""Counting bytes."""
