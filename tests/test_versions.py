"""All files that state the version and the authors agree."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def cited(key):
    """Return a field of CITATION.cff itself, not of a paper that it cites."""
    (value,) = re.findall(rf"^{key}: (.+)$", CITATION, re.MULTILINE)
    return value.strip('"')


def test_project_citation_and_changelog_have_one_version_and_date():
    version, date = re.search(
        r"^## \[([\d.]+)\] - ([\d-]+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    ).groups()
    assert PROJECT["version"] == cited("version") == version
    assert cited("date-released") == date


def test_project_citation_and_readme_agree_on_title_licence_and_authors():
    assert (ROOT / "README.md").read_text(encoding="utf-8").startswith(f"# {cited('title')}\n")
    assert (
        (ROOT / "NOTICE").read_text(encoding="utf-8").startswith(f"{cited('title')}\nCopyright 2026 the authors")
    )
    assert PROJECT["license"] == cited("license")
    assert [author["name"] for author in PROJECT["authors"]] == re.findall(
        r"^  - name: (.+)$", CITATION, re.MULTILINE
    )
