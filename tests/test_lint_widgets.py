"""What `make check` says of the widgets' JavaScript."""

import pytest

pytest.importorskip("anywidget")

from tools.lint_widgets import faults

SHARED = "const used = 1;\nfunction everywhere() {\n  return used;\n}\nfunction nowhere() {}\n"


def test_a_fault_is_told_and_a_shared_name_may_be_unused_in_one_script():
    one = SHARED + "export default everywhere();\n"
    other = SHARED + "export default used + missing;\n"
    found = sorted(faults({"One": one, "Other": other}))
    assert len(found) == 2
    assert found[0].startswith("One, Other: Function 'nowhere' is declared but never used")
    assert "'missing' is not defined" in found[1] and found[1].endswith("export default used + missing;")
