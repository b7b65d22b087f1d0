"""What runs in the page beside flashlib: a small kernel, and stand-ins for packages that a page does without."""
