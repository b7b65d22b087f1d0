"""A package, so that fixtures of scope "package" and playwright's event loop end after its last test."""

import pytest

pytest.register_assert_rewrite("tests.browser.shown")
