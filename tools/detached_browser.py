"""A Chromium that keeps running while playwright is detached, since an attached debugger slows a page down.

Playwright listens to everything that a page sends and receives. It parses each message of Jupyter again in node
and in Python: 10 ms of a core for a change of a setting, while the browser and Jupyter need both cores.
"""

import json
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from tests.browser import lab as browsing

FLAGS = ["--headless=new", "--remote-debugging-port=0", "--no-default-browser-check", "--hide-scrollbars"]
START = 30  # seconds within which Chromium must listen
EVERY = 0.5  # seconds between two reads of the page's title, which are cheap for the browser
DONE = "done"

# The script runs on in the page. At its end it sets the title, which can be read without being attached. The
# page records its requests meanwhile.
BEGIN = """([run, asked, pause, done]) => {
    performance.clearResourceTimings();
    const begun = new Promise((go) => setTimeout(go, pause)).then(() => eval(run)(asked));
    const ended = (outcome) => {
        document.title = done;
        return { ...outcome, requests: performance.getEntriesByType("resource").map(({ name }) => name) };
    };
    window.detached = begun.then((value) => ended({ value }), (error) => ended({ error: error.message }));
}"""


class Failed(Exception):
    """The script in the page threw this error."""


class DetachedBrowser:
    """A Chromium with one page, with the attributes of a browser that `tests.browser.lab.opened` uses."""

    def __init__(self, playwright, port):
        self.playwright, self.port = playwright, port
        self.requests = []  # addresses that the page requested while detached
        self._attach()

    def _attach(self):
        self._browser = self.playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{self.port}")
        (self.page,) = self._browser.contexts[0].pages
        self.page.set_viewport_size(browsing.SIZE)  # which is lost whenever playwright detaches

    @property
    def version(self):
        return self._browser.version

    def new_page(self, viewport):
        """Return the only page."""
        assert viewport == browsing.SIZE
        return self.page

    def run(self, script, asked, *, pause, timeout):
        """Call a JavaScript function with `asked` in the page while detached; return its result.

        It starts after a pause in ms, when the page is idle again. Raises Failed with what it throws. After
        `timeout` seconds playwright attaches again and waits. Afterwards `page` is a new object.
        """
        self.page.evaluate(BEGIN, [f"({script})", asked, pause, DONE])
        self._browser.close()  # closes the connection, not the browser
        end = time.monotonic() + timeout
        while self._title() != DONE and time.monotonic() < end:
            time.sleep(EVERY)
        self._attach()
        outcome = self.page.evaluate("() => window.detached")
        self.requests += outcome["requests"]
        if "error" in outcome:
            raise Failed(outcome["error"])
        return outcome["value"]

    def _title(self):
        with browsing.DIRECT.open(f"http://127.0.0.1:{self.port}/json/list", timeout=5) as found:
            return next(page["title"] for page in json.load(found) if page["type"] == "page")


@contextmanager
def chromium(playwright, folder: Path):
    """Yield a DetachedBrowser that keeps its data in the folder; raises NoBrowser as `browsing.chromium` does."""
    path = browsing.path()
    data, size = folder / "browser", "{width},{height}".format_map(browsing.SIZE)
    flags = [*browsing.FLAGS, *FLAGS, f"--user-data-dir={data}", f"--window-size={size}"]
    nothing = subprocess.DEVNULL
    process = subprocess.Popen([path, *flags, "about:blank"], stdin=nothing, stdout=nothing, stderr=nothing)
    try:
        yield DetachedBrowser(playwright, _port(data / "DevToolsActivePort"))
    finally:
        process.terminate()
        process.wait(20)


def _port(path):
    """Return the port that Chromium writes into a file when it listens."""
    end = time.monotonic() + START
    while time.monotonic() < end:
        if path.exists() and (lines := path.read_text().split()):
            return int(lines[0])
        time.sleep(0.05)
    raise RuntimeError(f"Chromium did not listen within {START} seconds")
