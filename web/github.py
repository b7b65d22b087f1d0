"""Names and addresses that GitHub derives from the address of a repository."""

from urllib.parse import urlsplit


def owned(repository):
    """Return OWNER/NAME of a repository on GitHub, "" for any other host."""
    url = urlsplit(repository)
    path = url.path.strip("/")
    return path if url.hostname == "github.com" and path.count("/") == 1 else ""


def pages(repository):
    """Return where GitHub serves the pages of a repository, "" for any other host."""
    owner, _, name = owned(repository).partition("/")
    return f"https://{owner.lower()}.github.io/{name}/" if owner else ""
