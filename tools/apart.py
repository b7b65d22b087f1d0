"""A Chromium that goes on while playwright has left it: what is attached to a page takes time from it.

Playwright listens to all that a page sends and receives. Each message of Jupyter is taken apart once more in node
and in Python, 10 ms of a core for a change of a setting, while on two cores the browser and Jupyter need both.
"""

import json
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from tests.browser import lab as browsing

FLAGS = ["--headless=new", "--remote-debugging-port=0", "--no-default-browser-check", "--hide-scrollbars"]
START = 30  # seconds until it listens
EVERY = 0.5  # seconds between two looks at a page's title, which cost the browser little
DONE = "done"

# What runs goes on in the page. Its end stands in the title, which can be read without being attached. The page
# keeps what it asked for meanwhile.
BEGIN = """([run, asked, pause, done]) => {
    performance.clearResourceTimings();
    const begun = new Promise((go) => setTimeout(go, pause)).then(() => eval(run)(asked));
    const ended = (outcome) => {
        document.title = done;
        return { ...outcome, requests: performance.getEntriesByType("resource").map(({ name }) => name) };
    };
    window.apart = begun.then((value) => ended({ value }), (error) => ended({ error: error.message }));
}"""


class Failed(Exception):
    """What ran in the page threw this."""


class Apart:
    """A Chromium with one page. Has what `tests.browser.lab.opened` asks of a browser."""

    def __init__(self, playwright, port):
        self.playwright, self.port = playwright, port
        self.requests = []  # addresses that the page asked for while nothing was attached to it
        self._attach()

    def _attach(self):
        self._browser = self.playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{self.port}")
        (self.page,) = self._browser.contexts[0].pages
        self.page.set_viewport_size(browsing.SIZE)  # this goes whenever playwright does

    @property
    def version(self):
        return self._browser.version

    def new_page(self, viewport):
        """Return the page that there is."""
        assert viewport == browsing.SIZE
        return self.page

    def run(self, script, asked, *, pause, timeout):
        """Return what a function of JavaScript makes of `asked` in the page, with nothing attached to it.

        It begins after a pause in ms, when the page rests again. Raises Failed for what it throws. After `timeout`
        seconds it is waited for with playwright attached. The page is a new object then, see `page`.
        """
        self.page.evaluate(BEGIN, [f"({script})", asked, pause, DONE])
        self._browser.close()  # the connection: the browser goes on
        end = time.monotonic() + timeout
        while self._title() != DONE and time.monotonic() < end:
            time.sleep(EVERY)
        self._attach()
        outcome = self.page.evaluate("() => window.apart")
        self.requests += outcome["requests"]
        if "error" in outcome:
            raise Failed(outcome["error"])
        return outcome["value"]

    def _title(self):
        with browsing.DIRECT.open(f"http://127.0.0.1:{self.port}/json/list", timeout=5) as found:
            return next(page["title"] for page in json.load(found) if page["type"] == "page")


@contextmanager
def chromium(folder: Path):
    """Yield an Apart, whose data lives in the folder; raises NoBrowser as `tests.browser.lab.chromium` does."""
    path, sync_playwright = browsing.needed()
    data, size = folder / "browser", "{width},{height}".format_map(browsing.SIZE)
    flags = [*browsing.FLAGS, *FLAGS, f"--user-data-dir={data}", f"--window-size={size}"]
    nothing = subprocess.DEVNULL
    process = subprocess.Popen([path, *flags, "about:blank"], stdin=nothing, stdout=nothing, stderr=nothing)
    try:
        with sync_playwright() as playwright:
            yield Apart(playwright, _port(data / "DevToolsActivePort"))
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
