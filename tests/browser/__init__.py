"""A package, so that fixtures of scope "package" end with its last test, and playwright's event loop with them."""

import pytest

pytest.register_assert_rewrite("tests.browser.shown")
