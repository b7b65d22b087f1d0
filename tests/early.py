"""A plugin that pytest loads before all others, in each of its processes: see `make test`.

Nothing here is an IRI. But jsonschema, which nbformat imports, builds a grammar for them: a second and a half.
"""

import sys

sys.modules["rfc3987_syntax"] = None  # as if it were not installed: jsonschema goes without it
