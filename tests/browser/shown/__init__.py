"""What each widget shows, compared with what Python computes for the setting on the page.

A module for each widget; its `check(widget)` does not change the setting. The short tests call it for the widget
made without arguments, the widget's own tests in other settings.
"""
