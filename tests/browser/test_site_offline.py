"""The site without a network, and what the browser stores of it: old pages, full storage, new versions."""

import hashlib
import os
import re
import shutil
import time
from contextlib import contextmanager

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("latex2mathml")
pytest.importorskip("nbconvert")

from flashlib.chapters import named
from tests.browser.test_site import DEAD, READY, Course, Quiet

pytestmark = pytest.mark.browser

SOME = ["online_softmax", "attention"]
PAGE, OTHER = (f"{named(name).slug}.html" for name in SOME)
PIECES, PIECE = 8, 100_000  # of a file that arrives slowly

# The addresses of stored files, below the site's home.
KEPT = """async () => (await (await caches.open("flashattention")).keys())
    .map(({ url }) => url.slice(new URL("./", location.href).href.length))"""
# Fetches a file; returns after how many milliseconds each piece of it arrived.
COMES = """async (address) => {
    const start = performance.now();
    const reader = (await fetch(address)).body.getReader();
    const times = [];
    while (!(await reader.read()).done) times.push(performance.now() - start);
    return times;
}"""
STATUS = "async ([address, options]) => (await fetch(address, options)).status"


def few_and_all(first, *others):
    """Return cases of an amount: the first is one of a few."""
    return [("few", first), *(("all", other) for other in others)]


class Host(Quiet):
    """Serves a site. "slow" arrives in pieces, "half" is sent as a part, "moved" moves, "NAME" is NAME.html."""

    def do_GET(self):
        path, _, _ = self.path.partition("?")
        name = path.rpartition("/")[2]
        if name == "slow":
            self.head(200, **{"Content-Length": PIECES * PIECE})
            for _ in range(PIECES):
                self.wfile.write(b"." * PIECE)
                time.sleep(0.1)
        elif name == "half":
            self.head(206, **{"Content-Length": 4, "Content-Range": "bytes 0-3/8"})
            self.wfile.write(b"half")
        elif name == "moved":
            self.head(302, Location=OTHER)
        else:
            self.path = path if not name or "." in name else f"{path}.html"
            super().do_GET()

    def end_headers(self):
        # As on GitHub Pages; but Chromium would not ask a worker for files that it has in memory. Without this
        # header it also keeps files in memory, for a tenth of their age.
        self.send_header("Cache-Control", "no-cache" if "/static/" in self.path else "max-age=600")
        super().end_headers()

    def head(self, status, **headers):
        self.send_response(status)
        for header, value in headers.items():
            self.send_header(header, str(value))
        self.end_headers()


class Site(Course):
    handler = Host

    @property
    def origin(self):
        return self.address.partition("/a/")[0]

    @contextmanager
    def away(self):
        """A context in which nothing answers."""
        self.stop()
        try:
            yield
        finally:
            self.start(self.server.server_port)

    @contextmanager
    def newer(self, name, old, new):
        """A context in which a file of the site has a different text."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = Site(tmp_path_factory.mktemp("offline"), SOME)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def opened(browser):
    """The page of all tests: creating one takes longer than clearing the storage of the one before."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture
def page(opened, site):
    """A page in a browser that has stored nothing yet; errors of scripts fail the test."""
    forget(opened, site)
    errors = []

    def note(error):
        errors.append(str(error))

    opened.on("pageerror", note)
    yield opened
    opened.remove_listener("pageerror", note)
    assert errors == []


def forget(page, site):
    """Remove from the browser everything that it has stored of the site, and the worker that stored it."""
    page.goto("about:blank")
    session = page.context.new_cdp_session(page)
    session.send("Network.clearBrowserCache")
    session.send("Storage.clearDataForOrigin", {"origin": site.origin, "storageTypes": "all"})
    session.detach()


def open_page(page, address):
    page.goto(address)
    page.wait_for_selector(READY, state="attached")


def keep_page(page, site, name=PAGE):
    """Open a page, and wait until it is stored."""
    open_page(page, site.address + name)
    wait_kept(page, re.sub(r"[?#].*", "", name) or "index.html", "offline.html", "static/site.js")


def wait_kept(page, *names):
    """Wait until files are stored, with any query if they are named without one; return all stored addresses."""
    end = time.monotonic() + 20
    while not set(names) <= {*(kept := page.evaluate(KEPT)), *(one.partition("?")[0] for one in kept)}:
        assert time.monotonic() < end, (names, kept)
        time.sleep(0.05)
    return kept


QUERIES = few_and_all("?utm_source=mail", "", "?fbclid=a1b2c3d4", "?0a1b2c3d", "?a=1&b=/static/x?")


@pytest.mark.parametrize("amount, query", QUERIES)
def test_a_changed_page_is_shown_in_its_new_version(page, site, amount, query):  # noqa: ARG001
    keep_page(page, site, PAGE)
    open_page(page, site.address + PAGE + query)
    with site.newer(PAGE, "<title>", "<title>NEW "):
        for address in (PAGE + query, PAGE):
            open_page(page, site.address + address)
            assert page.title().startswith("NEW"), address
    with site.away():
        open_page(page, site.address + PAGE + query)
        assert page.title().startswith("NEW"), "the newest is kept"


VISITS = few_and_all(
    ("?utm_source=mail", "?utm_source=chat"),
    ("", "?fbclid=1"),
    ("?utm_source=mail", ""),
    ("#questions", "?ref=1#sources"),
)


@pytest.mark.parametrize("amount, visits", VISITS)
def test_without_a_network_a_page_is_shown_whatever_its_query(page, site, amount, visits):  # noqa: ARG001
    visited, asked = visits
    keep_page(page, site, PAGE + visited)
    with site.away():
        open_page(page, site.address + PAGE + asked)
        assert page.evaluate(DEAD) == []


NAMES = few_and_all(("index.html?a=1", ""), ("", "index.html"), (PAGE, PAGE[:-5]))


@pytest.mark.parametrize("amount, names", NAMES)
def test_without_a_network_a_page_is_shown_under_each_of_its_names(page, site, amount, names):  # noqa: ARG001
    visited, asked = names
    keep_page(page, site, visited)
    with site.away():
        open_page(page, site.address + asked)
        assert "on your device" not in page.locator("h1").inner_text()


def test_only_complete_responses_are_stored(page, site):
    keep_page(page, site)
    open_page(page, site.address + PAGE)  # from now on the worker is present from the start
    for name, status in (("none.html", 404), ("half", 206), ("moved", 200)):
        assert page.evaluate(STATUS, [site.address + name, {}]) == status
    assert page.evaluate(STATUS, [f"{site.address}{OTHER}?a", {"method": "HEAD"}]) == 200
    page.goto(site.address + "none2.html")
    open_page(page, site.address + "moved")
    assert page.url == site.address + OTHER
    open_page(page, site.address + "about.html?x=1")
    kept = wait_kept(page, "about.html")
    strange = ("none.html", "none2.html", "half", "half.html", "moved", "moved.html", "about.html?x=1")
    assert not set(strange) & {*kept} and len(kept) == len(set(kept))


def test_if_nothing_can_be_stored_pages_still_arrive(page, site):
    keep_page(page, site)
    session = page.context.new_cdp_session(page)
    session.send("Storage.overrideQuotaForOrigin", {"origin": site.origin, "quotaSize": 1000})
    for name in (OTHER, "index.html", PAGE):
        open_page(page, site.address + name)
        assert page.evaluate(DEAD) == []
    with site.away():
        open_page(page, site.address + PAGE)  # earlier files stay
        assert page.evaluate(DEAD) == []
    session.detach()  # with the limit


def test_a_response_arrives_piece_by_piece_while_it_is_stored(page, site):
    keep_page(page, site)
    open_page(page, site.address + PAGE)
    times = page.evaluate(COMES, f"{site.address}slow")
    assert times[0] < 0.5 * times[-1] and times[-1] > 500, times
    assert max(b - a for a, b in zip(times, times[1:], strict=False)) < 0.5 * times[-1], "it moves steadily"
    wait_kept(page, "slow.html")


def test_an_unvisited_page_says_so_and_lists_the_visited_ones(page, site):
    keep_page(page, site, "")
    keep_page(page, site, f"{PAGE}?a=1")
    with site.away():
        page.goto(f"{site.address}{OTHER}?utm_source=mail#sources")
        assert page.locator("h1").inner_text() == "This page is not on your device"
        shown = page.locator("#kept a:visible")
        shown.nth(1).wait_for()
        assert shown.evaluate_all("all => all.map((one) => one.getAttribute('href'))") == ["index.html", PAGE]
        colour = "getComputedStyle(document.querySelector('header.top')).display"
        assert page.evaluate(colour) == "flex", "it has the look of the site"
        shown.nth(1).click()
        page.wait_for_selector(READY, state="attached")
        assert page.evaluate(DEAD) == []
        page.go_back()
        page.wait_for_selector("#kept")
    page.get_by_role("link", name="Try again").click()
    page.wait_for_selector("h1:has-text('02')")
    with site.away():
        page.goto(f"{site.address}static/none/at/all.html")
        assert page.url.endswith("/offline.html")
        page.locator("#kept a:visible").first.wait_for()


NOT_NEEDED = {".nojekyll", "404.html", "offline.js", "static/files.json", "static/preview.jpg"}


def test_the_whole_course_is_kept_at_a_press(page, site):
    """Also the pages that were not opened, and the files that only a script loads."""
    open_page(page, f"{site.address}about.html")
    page.get_by_role("button", name="Keep the course on this device").click()
    page.get_by_text("The course works without a network").wait_for()
    files = {path.relative_to(site.folder).as_posix() for path in site.folder.rglob("*") if path.is_file()}
    needed = {
        name for name in files - NOT_NEEDED if not name.startswith(("colab/", "static/icon-", "static/widgets/"))
    }
    assert len(needed) > 20 and needed <= {one.partition("?")[0] for one in wait_kept(page, *needed)}
    with site.away():
        open_page(page, site.address + OTHER)
        assert page.evaluate(DEAD) == []


def address_of_script(data):
    return f"static/site.js?{hashlib.sha256(data).hexdigest()[:8]}"


@contextmanager
def deployed(site, *names):
    """A context in which the site has a different script, which the pages with these names request."""
    script = site.folder / "static" / "site.js"
    old = script.read_bytes()
    new = old + b"\nglobalThis.isNew = true;\n"
    texts = {path: path.read_text(encoding="utf-8") for path in map(site.folder.joinpath, names)}
    before, after = map(address_of_script, (old, new))
    script.write_bytes(new)
    for path, text in texts.items():
        assert before in text
        path.write_text(text.replace(before, after), encoding="utf-8")
    try:
        yield script, old
    finally:
        script.write_bytes(old)
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")


def test_after_a_deploy_older_pages_still_work_without_a_network(page, site):
    keep_page(page, site, PAGE)
    with deployed(site, OTHER, "offline.html") as (script, _):
        keep_page(page, site, OTHER)
        assert page.evaluate("globalThis.isNew")
        wait_kept(page, address_of_script(script.read_bytes()))
        with site.away():
            for name in (PAGE, OTHER, "about.html"):
                page.goto(site.address + name)
                page.wait_for_function("() => globalThis.isNew")
            page.locator("#kept a:visible").nth(1).wait_for()
            assert page.locator("#kept a:visible").count() == 2


def test_a_file_that_a_deploy_has_not_replaced_yet_is_not_stored_as_the_new_one(page, site):
    keep_page(page, site, PAGE)
    with deployed(site, PAGE) as (script, old):
        new = script.read_bytes()
        script.write_bytes(old)
        open_page(page, site.address + PAGE)
        page.wait_for_timeout(500)
        script.write_bytes(new)
        os.utime(script, (time.time() + 5,) * 2)  # hosts compare times in seconds
        open_page(page, site.address + PAGE)
        assert page.evaluate("globalThis.isNew") is True


@pytest.mark.parametrize("amount, place", few_and_all("100%", "%", "%E0%A4%A", "%zz", "sources%"))
def test_an_address_ending_in_a_percent_sign_is_stored_without_an_error(page, site, amount, place):  # noqa: ARG001
    keep_page(page, site, f"{PAGE}#{place}")
    page.evaluate("place => { location.hash = place + '%'; }", place)
    page.wait_for_timeout(50)  # until the page has noticed it


def test_a_page_whose_widgets_cannot_play_is_still_stored(opened, site):
    shutil.copy(site.folder / PAGE, site.folder / "broken.html")
    with site.newer("broken.html", 'widget-state+json">{', 'widget-state+json">'):  # no longer JSON
        forget(opened, site)
        opened.goto(f"{site.address}broken.html")
        wait_kept(opened, "broken.html")
