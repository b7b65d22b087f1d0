"""What each widget shows, compared with what Python computes for the setting that is on the page.

A module for each widget; its `check(widget)` leaves the setting as it is. The short tests call it for the widget
as it is made without arguments, the widget's own tests in other settings.
"""
