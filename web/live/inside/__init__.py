"""What runs on the page together with flashlib: a small kernel, and stand-ins for packages that a page lacks."""
