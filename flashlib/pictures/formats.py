"""The formats in which a plot is stored in a notebook, beside its PNG."""

PHONE = "application/vnd.flashlib.phone+svg"  # laid out again for the width of a phone
DRAWN = "image/svg+xml", PHONE  # only for notebooks that are stored: other runs of a cell do not have them
