"""The site as seen by a visitor: served under a path, every page, both themes, desktop and phone."""

import functools
import gzip
import html
import http.server
import json
import re
import threading
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("axe_playwright_python")
pytest.importorskip("latex2mathml")
pytest.importorskip("nbconvert")

from flashlib.chapters import CHAPTERS, FURTHER, NOTEBOOKS, PARTS, named
from flashlib.widgets import FlashPlayer
from tests.browser.probes import AXE, ENOUGH, FIRST_PICTURE, FIRST_SCREEN, FOCUS, NO_PICTURE_FIRST, STOPS
from web import build, scripts
from web.chapter import COVER

pytestmark = pytest.mark.browser

# One whose settings are recorded, one with everything that a chapter can have, and one without a number.
SOME = ["start_here", "online_softmax", "glossary"]
START, CHAPTER, GLOSSARY = (f"{named(name).slug}.html" for name in SOME)
FEW = ["index.html", CHAPTER]
ALL = [*(f"{one.slug}.html" for one in NOTEBOOKS), "index.html", "about.html", "offline.html", "404.html"]
OPENINGS = [one for one in CHAPTERS if one.name not in NO_PICTURE_FIRST]
CASES = [*(("few", page) for page in FEW), *(("all", page) for page in ALL)]
WIDTHS = {"desk": (1366, 900), "phone": (390, 844)}
NARROW = {"width": 360, "height": 640}  # another phone
FINGER = 44  # px: what a finger needs
LARGEST = 300_000  # bytes, gzipped: everything but the font that a first visit to a page loads
LIGHT = 110_000  # of the first page
READY = "html[data-ready]"

# Elements wider than the page, except those that scroll sideways themselves.
TOO_WIDE = """() => {
    const width = document.documentElement.clientWidth;
    const moves = (e) => /auto|scroll|hidden/.test(getComputedStyle(e).overflowX);
    const held = (e) => e && (moves(e) || held(e.parentElement));
    const beyond = (e) => e.checkVisibility() && e.getBoundingClientRect().right > width + 1;
    const wide = [...document.querySelectorAll("body *")].filter((e) => beyond(e) && !held(e.parentElement));
    const across = document.documentElement.scrollWidth;
    return across > innerWidth ? [`${across} px`, ...wide.map((e) => e.outerHTML.slice(0, 150))] : [];
}"""
# Code that does not wrap, widgets wider than their place, low controls, fields whose text makes a phone zoom in.
UNFIT = """(finger) => {
    const seen = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility());
    const box = (e) => (e.matches("[type=checkbox]") ? e.closest("label") : e).getBoundingClientRect();
    const unfit = [
        seen(":is(.code, .highlight) > pre, .flash-widget").filter((e) => e.scrollWidth > e.clientWidth),
        seen("main :is([type=range], [type=checkbox], .flash-play)").filter((e) => box(e).height < finger),
        seen("main :is([type=text], select)").filter((e) => parseFloat(getComputedStyle(e).fontSize) < 16),
    ];
    return unfit.flat().map((e) => e.outerHTML.slice(0, 150));
}"""
# For a part of a long page in the short tests: axe looks at each word of the code.
VIOLATIONS = """async (amount) => {
    const exclude = amount === "few" ? ["main > :nth-child(n + 12)"] : [];
    const { violations, passes } = await axe.run({ exclude });
    if (!passes.length) return ["axe has looked at nothing"];
    return violations.flatMap(({ id, help, nodes }) => nodes.map(({ html }) => `${id}: ${help}: ${html}`));
}"""
# How much wider a root is than its content, in em: the sign in front of it.
ROOTS = """() => [...document.querySelectorAll("msqrt, mroot")].filter((e) => e.checkVisibility()).map((e) => {
    const inside = [...e.children].slice(0, e.localName === "mroot" ? 1 : undefined);
    const width = inside.reduce((sum, child) => sum + child.getBoundingClientRect().width, 0);
    return [e.outerHTML, (e.getBoundingClientRect().width - width) / parseFloat(getComputedStyle(e).fontSize)];
})"""
# Among letters and signs of the formulas that look the same, one is marked.
ONE_OF_EACH = """() => {
    const each = new Map();
    const seen = (e) => e.textContent.trim() && e.checkVisibility();
    for (const e of [...document.querySelectorAll("math :is(mi, mo, mn, mtext)")].filter(seen))
        each.set(`${e.textContent} ${e.getAttribute("mathvariant")}`, e);
    for (const e of each.values()) e.dataset.one = "";
    return [...document.querySelectorAll("[data-one]")].map((e) => e.textContent);
}"""
SCROLLED = """async () => {
    for (let y = 0; y < document.documentElement.scrollHeight; y += 800) {
        scrollTo(0, y);
        await new Promise((done) => setTimeout(done, 20));
    }
    scrollTo(0, 0);
}"""
# How far a page has moved while it loaded and was read, as browsers measure it.
SHIFT = """() => new Promise((done) => {
    let [most, sum, first, last] = [0, 0, -Infinity, -Infinity];
    new PerformanceObserver((list) => {
        for (const { startTime, value, hadRecentInput } of list.getEntries()) {
            if (hadRecentInput) continue;
            if (startTime - last > 1000 || startTime - first > 5000) [sum, first] = [0, startTime];
            [sum, last] = [sum + value, startTime];
            most = Math.max(most, sum);
        }
    }).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => done(most), 50);
})"""
LARGEST_SHIFT = 0.05
# Opens what questions cover, and waits for the widgets there.
UNCOVERED = """async () => {
    for (const cover of document.querySelectorAll(".cover")) cover.open = true;
    const waits = () => document.querySelector("[data-place]:not(.plays, .fails)");
    for (let k = 0; k < 500 && waits(); k++) await new Promise((done) => setTimeout(done, 10));
}"""
# What is wrong at each place: it must play, and a step must change it. Covers are closed again.
DEAD = """async () => {
    await (UNCOVERED)();
    const dead = [...document.querySelectorAll("[data-place]")].flatMap((place) => {
        const root = place.querySelector(".flash-widget");
        const { place: cell } = place.dataset;
        if (root?.querySelector(".flash-problem")) return []; // it says that an exercise is not solved yet
        if (!place.matches(".plays") || root?.dataset.loads !== "1") return [`not played: ${cell}`];
        if (root.getBoundingClientRect().height < 40) return [`nothing to see: ${cell}`];
        const { transport } = root.flashWidget;
        if (!transport) return [];
        transport.seek(0);
        const before = root.innerHTML;
        transport.step(1);
        return transport.position === 1 && root.innerHTML !== before ? [] : [`a step changes nothing: ${cell}`];
    });
    for (const cover of document.querySelectorAll(".cover")) cover.open = false;
    return dead;
}""".replace("UNCOVERED", UNCOVERED)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


class Served:
    """A folder that is served, and the address of the site in it."""

    handler = Quiet

    def __init__(self, folder):
        self.serve = functools.partial(self.handler, directory=str(folder))
        self.start(0)
        self.address = f"http://127.0.0.1:{self.server.server_port}/a/path/"

    def start(self, port):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), self.serve)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Course(Served):
    """A site that is served under a path."""

    def __init__(self, folder, chapter, is_live=False):
        self.folder = folder / "a" / "path"
        self.made = build.build(self.folder, "https://github.com/owner/name", chapter, is_live)
        super().__init__(folder)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A function that returns the site: `few`, of one chapter, or `all`; each is built once."""
    made = {}

    def of(amount):
        if amount not in made:
            made[amount] = Course(tmp_path_factory.mktemp("site"), SOME if amount == "few" else None)
        return made[amount]

    yield of
    for one in made.values():
        one.stop()


@contextmanager
def visit(browser, address, size="desk", theme="light", errors=0, keeps=False):
    """Yield the page at an address, once it is ready; it requests nothing elsewhere, and logs this many errors.

    size: a name of WIDTHS, or a width and a height. keeps: whether the browser may store pages for use without a
    network, which takes as long as showing one.
    """
    context = browser.new_context() if keeps else forgetful(browser, size == "phone")
    page = context.new_page()
    page.set_viewport_size(dict(zip(("width", "height"), WIDTHS.get(size, size), strict=True)))
    page.emulate_media(color_scheme=theme)
    complaints, page.loaded = [], []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("response", lambda response: page.loaded.append(response))
    try:
        page.goto(address)
        if "404" not in address:
            page.wait_for_selector(READY, state="attached")
        yield page
        home = "{0.scheme}://{0.netloc}/".format(urlsplit(address))
        assert [one.url for one in page.loaded if not one.url.startswith((home, "data:", "blob:"))] == []
        assert errors is None or len(complaints) == errors, complaints
    finally:
        if keeps:
            context.close()
        else:
            page.evaluate("localStorage.clear()")
            page.close()


@functools.cache
def forgetful(browser, touch):
    """Return a context whose pages share only loaded files, which saves two thirds of the time."""
    return browser.new_context(service_workers="block", has_touch=touch)


def weight(page):
    """Return how many bytes were loaded, without fonts, gzipped unless already compressed."""
    names = {one.url: one.body() for one in page.loaded if one.url.startswith(("http", "file"))}
    return sum(
        len(body) if url.endswith((".webp", ".jpg")) else len(gzip.compress(body))
        for url, body in names.items()
        if not url.endswith(".woff2")
    )


@pytest.mark.parametrize("amount, name", CASES)
def test_little_is_loaded_before_a_page_is_painted(course, amount, name):
    """On a slow line each 50 KB take a second: what a head names must arrive first, unless it is deferred."""
    folder = course(amount).folder
    head, _, _ = (folder / name).read_text(encoding="utf-8").partition("</head>")
    blocking = re.findall(r'<(?:script src|link rel="stylesheet" href)="([^"?]+)', head)
    assert len(blocking) >= 2 or name == "404.html"
    assert sum(len(gzip.compress((folder / one).read_bytes())) for one in blocking) <= 20_000


@pytest.mark.parametrize("size", WIDTHS)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("amount, name", CASES)
def test_a_page_plays_fits_and_is_accessible(browser, course, amount, name, theme, size):
    with visit(browser, course(amount).address + name, size, theme) as page:
        assert page.evaluate(TOO_WIDE) == []
        page.evaluate(SCROLLED)
        page.wait_for_load_state("networkidle")
        assert page.evaluate(SHIFT) <= LARGEST_SHIFT
        assert page.evaluate(DEAD) == []
        assert weight(page) <= (LIGHT if name == "index.html" else LARGEST) and len(page.loaded) <= 30
        if (size, theme) == ("phone", "light"):
            check_finger(page)
        if (size == "phone") != (theme == "dark"):
            return  # axe is slow, and sees both themes and both sizes in the two other cases
        page.evaluate(AXE.read_text(encoding="utf-8"))
        assert page.evaluate(VIOLATIONS, amount) == []


def check_finger(page):
    """Open all that is folded, and check that it fits phones and fingers."""
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    page.evaluate(UNCOVERED)
    assert page.evaluate(TOO_WIDE) == []
    page.set_viewport_size(NARROW)
    assert page.evaluate(TOO_WIDE) == [] and page.evaluate(UNFIT, FINGER) == []


@pytest.mark.parametrize("amount, name", [("few", CHAPTER), *(("all", f"{c.slug}.html") for c in OPENINGS)])
def test_a_chapter_opens_with_something_to_see(browser, course, amount, name):
    with visit(browser, course(amount).address + name) as page:
        page.set_viewport_size(FIRST_SCREEN)
        assert page.evaluate(FIRST_PICTURE) >= ENOUGH
        width, height = WIDTHS["phone"]
        page.set_viewport_size({"width": width, "height": 2 * height})
        page.wait_for_function(f"({FIRST_PICTURE})() >= {ENOUGH}", timeout=5000)


@pytest.mark.parametrize("amount, name", [("few", GLOSSARY), *(("all", name) for name in ALL)])
def test_roots_are_drawn_and_formulas_are_in_their_font(browser, course, amount, name):
    """A root is wider than its content; a sign that the font lacks comes from another font."""
    with visit(browser, course(amount).address + name, errors=None) as page:
        page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
        page.evaluate("document.fonts.ready")
        roots = page.evaluate(ROOTS)
        assert [maths for maths, wider in roots if wider < 0.4] == []
        assert roots or amount == "all", "there is a root to look at"
        used = fonts(page)
        assert used.get("Latin Modern Math") or amount == "all", "there is a formula to look at"
        assert {name: texts for name, texts in used.items() if name != "Latin Modern Math"} == {}


def fonts(page):
    """Return the fonts in which Chromium sets the formulas of a page: {name: the signs set in it}."""
    client = page.context.new_cdp_session(page)
    client.send("DOM.enable")
    client.send("CSS.enable")
    texts = page.evaluate(ONE_OF_EACH)
    root = client.send("DOM.getDocument")["root"]["nodeId"]
    nodes = client.send("DOM.querySelectorAll", {"nodeId": root, "selector": "[data-one]"})["nodeIds"]
    found = {}
    for node, text in zip(nodes, texts, strict=True):
        for font in client.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]:
            found.setdefault(font["familyName"], set()).add(text)
    return found


@pytest.mark.parametrize("amount", ["few", "all"])
def test_links_lead_somewhere(course, amount):
    """To a page and to a place on it; between chapters only if all are present."""
    folder = course(amount).folder
    texts = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.html")}
    ids = {name: set(re.findall(r'\bid="([^"]+)"', text)) for name, text in texts.items()}
    for name, text in texts.items():
        if name == "404.html":
            continue  # its links are those of the published site
        for link in map(html.unescape, re.findall(r'\b(?:href|src|data-index)="([^"]+)"', text)):
            target, _, place = link.partition("#")
            target = target.partition("?")[0] or name
            if (
                link.startswith("https://")
                or amount == "few"
                and re.match(r"\d\d_", target)
                and target not in texts
            ):
                continue
            assert (folder / target).is_file(), (name, link)
            assert not place or unquote(place) in ids[target], (name, link)


def test_a_page_without_a_number_is_in_the_contents_and_has_no_place_in_the_order(course):
    texts = {name: (course("few").folder / name).read_text(encoding="utf-8") for name in (CHAPTER, GLOSSARY)}
    for text in texts.values():
        assert re.findall(r'<p class="part">(.*?)</p>', text) == [next(iter(PARTS)), FURTHER]
        (link,) = re.findall(rf'<a href="{GLOSSARY}"[^>]*>\s*(.*?) *<span class="have"', text)
        assert link == "Glossary"
    assert 'class="turn"' in texts[CHAPTER] and 'class="turn"' not in texts[GLOSSARY]
    assert "<h1>Glossary</h1>" in texts[GLOSSARY] and f'rel="next" href="{GLOSSARY}"' not in texts[CHAPTER]


def test_each_script_of_a_widget_hands_it_over(browser, course):
    with visit(browser, course("few").address + "about.html") as page:
        for name in scripts.classes():
            page.add_script_tag(url=f"{course('few').address}static/widgets/{name}.js")
        found = page.evaluate("Object.entries(flashSite.widgets).map(([name, one]) => [name, typeof one.render])")
        assert dict(found) == dict.fromkeys(scripts.classes(), "function")


@pytest.fixture(scope="module")
def chapter(browser, course):
    """A chapter that several tests use one after another."""
    with visit(browser, f"{course('few').address}{CHAPTER}") as page:
        yield page


def test_an_answer_opens_what_it_covers_and_is_kept(chapter):
    cover = chapter.locator(".cover").first
    name = cover.get_attribute("data-cards").split()[-1]
    card = chapter.locator(f".card[data-card={name}] .flash-card")
    assert cover.evaluate("e => e.open") is False
    assert not card.locator(".flash-card-asks").is_visible(), "the question is just above"
    for field in card.locator("input[type=text]").all():
        field.fill("12345678")
    for group in card.locator(".flash-card-options").all():
        group.locator("button").first.click()
    card.get_by_role("button", name="Check").click()
    if card.get_by_role("button", name="Show the answer").count():
        assert cover.evaluate("e => e.open") is False, "a wrong guess opens nothing"
        card.get_by_role("button", name="Show the answer").click()
    chapter.wait_for_selector(f".cover[open][data-cards='{cover.get_attribute('data-cards')}']")
    chapter.reload()
    chapter.wait_for_selector(READY, state="attached")
    assert "1 of" in chapter.locator("#contents [aria-current] .have").inner_text()
    assert card.get_attribute("data-outcome") in ("right", "wrong")


WIDGET = re.compile(r'<div class="widget" data-place="[^"]*"><div class="still">.*?</div></div>', re.DOTALL)


@pytest.mark.parametrize("size", WIDTHS)
def test_a_covered_widget_is_drawn_when_it_is_opened(browser, course, size):
    path = course("few").folder / "covered.html"
    text = (path.parent / CHAPTER).read_text(encoding="utf-8")
    covered = WIDGET.sub(lambda found: COVER.format("unanswered", "Opens later", found[0]), text, count=1)
    path.write_text(covered, encoding="utf-8")
    with visit(browser, f"{course('few').address}{path.name}", size) as page:
        cover = page.locator(".cover[data-cards=unanswered]")
        assert cover.locator("[data-place]").count() == 1 and cover.locator(".flash-widget").count() == 0
        page.evaluate("for (const cover of document.querySelectorAll('.cover:has(.cover)')) cover.open = true")
        cover.locator("> summary").click()
        widget = cover.locator(".plays > * > .flash-widget")
        widget.wait_for()
        room, box = (one.bounding_box() for one in (cover.locator("[data-place]"), widget))
        assert room["width"] - 8 <= box["width"] <= room["width"] and box["height"] > 40
        assert page.evaluate(TOO_WIDE) == []
    path.unlink()


MARKED = "k => document.querySelectorAll('#contents ol a')[k]?.matches('[aria-current=location]')"


def test_the_contents_mark_the_section_and_the_first_page_continues_there(browser, course):
    with visit(browser, f"{course('few').address}{CHAPTER}") as page:
        heads = page.locator("main h2")
        for k in (4, 1, 2):
            heads.nth(k).evaluate("heading => heading.scrollIntoView()")
            page.wait_for_function(MARKED, arg=k)
        assert page.locator("[aria-current=location]").count() == 1
        title = page.locator("#contents ol a").nth(2).inner_text()
        page.goto(course("few").address)
        link = page.locator("#continue a")
        assert link.inner_text() == f"Continue at {named(SOME[1]).number} · {title}"
        link.click()
        page.wait_for_function(MARKED, arg=2)


def test_progress_without_a_place_is_enough_to_continue(browser, course):
    (card, *_) = next(one.page.cards for one in course("few").made if one.chapter.name == SOME[1])
    with visit(browser, course("few").address) as page:
        assert not page.locator("#continue").is_visible(), "nothing is done yet"
        known = {"solved": {}, "predicted": {card: {"a": "1"}}}
        page.evaluate("known => localStorage.setItem('flashlib.progress', known)", json.dumps(known))
        page.reload()
        assert page.locator("#continue a").inner_text() == f"Continue at {named(SOME[1]).number}"
        bar = page.locator(f".have[data-done='{CHAPTER[:-5]}']")
        assert bar.evaluate("e => parseFloat(e.style.getPropertyValue('--done'))") > 0


def test_progress_is_saved_and_loaded(browser, course, tmp_path):
    (name, *_) = next(one.page.exercises for one in course("few").made if one.page.exercises)
    with visit(browser, f"{course('few').address}{CHAPTER}") as page:
        page.locator(f"[data-solved={name}]").check()
        page.goto(f"{course('few').address}about.html#progress")
        with page.expect_download() as download:
            page.get_by_role("button", name="Save as a file").click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        found = json.loads(path.read_text(encoding="utf-8"))
        assert path.name == "progress.json" and set(found) == {"solved", "predicted"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["solved"][name])
        page.get_by_role("button", name="Delete").click()
        page.locator("#progress-import").set_input_files(path)
        page.get_by_text("Loaded from progress.json: 1 exercises").wait_for()
        (tmp_path / "other.json").write_text("[1]")
        page.locator("#progress-import").set_input_files(tmp_path / "other.json")
        page.get_by_text("other.json is not a progress file").wait_for()
        page.goto(f"{course('few').address}{CHAPTER}")
        page.wait_for_selector(READY, state="attached")
        assert page.locator(f"[data-solved={name}]").is_checked()


def test_the_theme_is_chosen_and_the_widgets_follow(chapter):
    root = chapter.locator(".widget .flash-widget").first
    assert "flash-dark" not in root.get_attribute("class")
    chapter.get_by_role("button", name="Dark theme").click()
    chapter.wait_for_selector(".widget .flash-widget.flash-dark")
    chapter.reload()
    chapter.wait_for_selector(".widget .flash-widget.flash-dark")
    assert chapter.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"


def test_a_recorded_setting_is_answered_as_by_python(browser, course):
    with visit(browser, course("few").address + START) as page:
        root = page.locator(".widget .flash-widget")
        assert root.locator(".flash-settings").first.is_enabled()
        root.locator("input[data-name=B_c]").fill("3")
        root.locator("input[data-name=B_r]").fill("5")  # before the record has arrived
        page.wait_for_selector(".flash-widget[data-tiles='4']")
        sent = root.evaluate(
            "root => Array.from(new Uint8Array(root.flashWidget.model.get('frames').buffer.buffer))"
        )
        assert bytes(sent) == FlashPlayer.from_sentence(B_r=5, B_c=3, panels="less").frames["buffer"]
        assert not root.evaluate("root => root.flashWidget.busy.textContent")


def test_a_lost_record_is_reported(browser, course):
    folder = course("few").folder
    text = re.sub(r'("record":\{"name":")\w+', r"\1gone", (folder / START).read_text(encoding="utf-8"))
    (folder / "broken.html").write_text(text, encoding="utf-8")
    with visit(browser, f"{course('few').address}broken.html", errors=1) as page:
        page.locator("input[data-name=B_c]").fill("3")
        page.get_by_text("This setting is not available").wait_for()
    (folder / "broken.html").unlink()


LONGER = """() => {
    const list = document.querySelector("#contents > ul");
    const chapter = list.querySelector("li:not(:has(ol))");
    for (let k = 0; k < 30; k++) list.append(chapter.cloneNode(true));
}"""


WINDOWS = [("few", 360, 640), ("few", 700, 500), ("all", 390, 844), ("all", 820, 1180)]


@pytest.mark.parametrize("amount, width, height", WINDOWS)
def test_the_contents_open_scroll_lead_somewhere_and_close(browser, course, amount, width, height):  # noqa: ARG001
    with visit(browser, f"{course('few').address}{CHAPTER}", "phone") as page:
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate(LONGER)  # as if the site had all chapters, and some more
        contents, button = page.locator("#contents"), page.get_by_role("button", name="Contents")
        for _ in range(2):
            assert contents.is_hidden() and button.get_attribute("aria-expanded") == "false"
            button.click(timeout=5000)
            assert contents.is_visible() and button.get_attribute("aria-expanded") == "true"
            button.click(timeout=5000)
        button.click()
        assert page.evaluate("document.activeElement.getAttribute('aria-current')") == "page"
        box = contents.bounding_box()
        assert box["y"] >= page.locator(".top").bounding_box()["height"] - 1, "the button is not covered"
        assert box["y"] + box["height"] <= height + 1
        page.mouse.move(180, height / 2)
        for _ in range(20):  # also beyond the end of the list
            page.mouse.wheel(0, 400)
        last = contents.locator("> ul > li:last-child > a").last
        page.wait_for_function("e => e.getBoundingClientRect().bottom <= innerHeight", arg=last.element_handle())
        assert page.evaluate("scrollY") == 0, "the page below the list stays where it is"
        with page.expect_navigation():
            last.click()
        page.wait_for_selector(READY, state="attached")
        assert contents.is_hidden() and not page.url.endswith(CHAPTER)


def test_the_contents_close_when_they_lead_to_a_section(browser, course):
    with visit(browser, f"{course('few').address}{CHAPTER}", "phone") as page:
        contents = page.locator("#contents")
        page.get_by_role("button", name="Contents").click()
        page.keyboard.press("Escape")
        assert contents.is_hidden()
        page.get_by_role("button", name="Contents").click()
        contents.locator("ol a").last.click()
        assert contents.is_hidden() and "#" in page.url and page.evaluate("scrollY") > 0


def test_it_can_be_opened_as_a_file(browser, course):
    folder = course("few").folder
    with visit(browser, (folder / "index.html").as_uri()) as page:
        page.locator("#loop .mistake .loop-line").click()
        page.get_by_label("the line to mend").fill("O_acc = 0")
        page.get_by_role("button", name="Run").click()
        page.get_by_text("have no Python").wait_for()
        page.get_by_role("button", name="Write it for me").click()
        page.get_by_text("right on these numbers").wait_for()
    with visit(browser, (folder / CHAPTER).as_uri()) as page:
        assert page.evaluate(DEAD) == []
        page.locator("#search-open").click()
        page.keyboard.type("softmax")
        page.locator("#search li").first.wait_for()


def test_without_javascript_text_and_pictures_are_shown(browser, course):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{course('few').address}{CHAPTER}")
    assert page.locator(".still img").first.is_visible() and page.locator("#contents").is_visible()
    assert not page.locator("button:visible, [data-live]:visible").count(), "nothing would respond"
    context.close()


@pytest.mark.parametrize("name", FEW)
def test_every_control_is_reached_by_tab(browser, course, name):
    with visit(browser, course("few").address + name) as page:
        page.emulate_media(reduced_motion="reduce")  # so that nothing plays, and changes what there is to reach
        page.reload()
        page.wait_for_selector(READY, state="attached")
        root = page.evaluate_handle("document.body")
        count = page.evaluate(f"window.stops = ({STOPS})(document.body); window.stops.length")
        assert count > 20
        left = {str(k) for k in range(count)}
        for _ in range(count + 20):  # Chromium also stops at what scrolls
            page.keyboard.press("Tab")
            left.discard(page.evaluate(FOCUS, root))
            if not left:
                break
        assert left == set()
