"""JupyterLab and Chromium, started by the tests here and by tools/measure_widgets.py."""

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import nbformat

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
TOKEN = "course"
LOCAL = ("localhost", "127.0.0.1")
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # http_proxy is not for this machine
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
SIZE = {"width": 1440, "height": 1000}
THEMES = ["JupyterLab Light", "JupyterLab Dark"]
START_TIMEOUT = 60  # seconds
RUN_TIMEOUT = 120_000  # milliseconds: all cells of a chapter
DRAW_TIMEOUT = 60_000  # their widgets, after that
TIMEOUT = 30_000  # for everything else
KERNEL_TIMEOUT = 60_000  # where a kernel must start first

# Only this is reliable: a run started before the kernel has introduced itself is lost silently. When a kernel is
# idle it has sent its widgets; the page imports and draws them after that.
UNDRAWN = "the widgets were not drawn in time"
RUN_ALL = """async ([timeout, drawing, undrawn]) => {
    const start = performance.now();
    const app = window.jupyterapp;
    const panel = app.shell.currentWidget;
    await panel.context.ready;
    await panel.sessionContext.ready;
    await panel.sessionContext.session.kernel.info;
    await app.commands.execute("notebook:run-all-cells");
    const code = panel.content.model.cells;
    const session = panel.sessionContext.session;
    const cells = () => Array.from({ length: code.length }, (_, k) => code.get(k));
    const waiting = (cell) => cell.type === "code" && cell.sharedModel.getSource().trim() && !cell.executionCount;
    const errors = () => cells().flatMap((cell, k) => {
        if (cell.type !== "code" || (cell.getMetadata("tags") ?? []).includes("raises-exception")) return [];
        return cell.outputs.toJSON().filter((output) => output.output_type === "error").map(
            (output) => `cell ${k}: ${output.ename}: ${output.evalue}`
        );
    });
    while (session.kernel.status !== "idle" || cells().some(waiting)) {
        if (errors().length) break; // the cells below it will not run
        if (performance.now() - start > timeout) return ["the cells did not end in time", ...errors()];
        await new Promise((done) => setTimeout(done, 100));
    }
    const widget = "application/vnd.jupyter.widget-view+json";
    const drawn = ".flash-widget:is([data-loads], :has(> .flash-problem))";
    const awaited = (cell, k) => {
        const sent = cell.outputs?.toJSON().filter(({ data }) => widget in (data ?? {})) ?? [];
        return panel.content.widgets[k].node.querySelectorAll(drawn).length < sent.length;
    };
    const ended = performance.now();
    while (!errors().length && cells().some(awaited)) {
        if (performance.now() - ended > drawing) {
            const late = cells().flatMap((cell, k) => (awaited(cell, k) ? [k] : []));
            const shown = late.map((k) => `cell ${k}: ${panel.content.widgets[k].outputArea.node.textContent}`);
            return [`${undrawn}; kernel ${session.kernel.status}`, ...shown];
        }
        await new Promise(requestAnimationFrame);
    }
    return errors();
}"""

# Run a cell again; if it shows a widget, wait until that has drawn what Python sent.
RUN_AGAIN = """async ([index, timeout]) => {
    const start = performance.now();
    const { content: notebook } = window.jupyterapp.shell.currentWidget;
    const cell = notebook.widgets[index];
    const shown = () => [...cell.node.querySelectorAll(".flash-widget[data-loads]")];
    const before = new Set(shown());
    notebook.activeCellIndex = index;
    await window.jupyterapp.commands.execute("notebook:run-cell");
    const widget = "application/vnd.jupyter.widget-view+json";
    if (!cell.model.outputs.toJSON().some(({ data }) => widget in (data ?? {}))) return;
    while (!shown().some((root) => !before.has(root))) {
        if (performance.now() - start > timeout) throw Error("no widget came");
        await new Promise(requestAnimationFrame);
    }
}"""

# The width of a widget, once the layout has followed the window and the widget's neighbours.
SETTLED = """async (root, across) => {
    let before;
    for (let k = 0; k < 100 && (innerWidth !== across || root.clientWidth !== before); k++) {
        before = root.clientWidth;
        for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
    }
    return root.clientWidth;
}"""

# The style sheet comes before the name of the theme; then the widgets look at it, and a splash screen goes away.
THEMED = """(name) => {
    const { jpThemeName, jpThemeLight } = document.body.dataset;
    const follows = (root) => root.classList.contains("flash-dark") === (jpThemeLight === "false");
    return jpThemeName === name && !document.getElementById("jupyterlab-splash") &&
        [...document.querySelectorAll(".flash-widget[data-loads]")].every(follows);
}"""

BEGIN = """index => {
    window.jupyterapp.shell.currentWidget.content.activeCellIndex = index;
    void window.jupyterapp.commands.execute("notebook:run-cell");
}"""

CLOSE = """async () => {
    const panel = window.jupyterapp?.shell.currentWidget;
    await panel?.sessionContext.shutdown();
    panel?.dispose();
}"""

OURS = "blob:"  # what anywidget makes of a widget's code, in the stack of an error


class NoBrowser(Exception):
    """There is no browser to drive, or nothing to drive it with."""


class Lab:
    """JupyterLab in a page of the browser, and that page's complaints and requests."""

    def __init__(self, page, address):
        self.address = address
        self.name, self.complaints, self.outside, self.closed = None, [], [], False
        self.ran = False  # whether the Python of the notebook has run its cells
        self.watch(page)

    def watch(self, page):
        """Take the page, and listen to it: at first, and when playwright has left it and come back."""
        self.page = page
        page.on("console", self._console)
        page.on("pageerror", self._error)
        page.on("request", self._request)
        page.on("websocket", self._request)

    def _console(self, message):
        if message.type == "error":
            self.complaints.append(f"{message.text} ({message.location.get('url', '')})")

    def _error(self, error):
        """Note an uncaught error, but not JupyterLab's own when a notebook was closed in this page.

        It may report late, in one form or another, that the closed notebook's kernel, or a request to it, is gone.
        """
        if OURS in (error.stack or "") or not self.closed:
            self.complaints.append(str(error))

    def _request(self, request):
        if leaves(request.url):
            self.outside.append(request.url)

    def open(self, name):
        """Open a notebook, in the running JupyterLab if it has started, and wait until it is shown."""
        self.name, self.ran = name, False
        if self.page.url.startswith(self.address):
            self.complaints.clear()
            self.outside.clear()
            self.page.set_viewport_size(SIZE)
            self.page.evaluate("() => window.jupyterapp.shell.expandLeft()")
            self.theme("JupyterLab Light")
            open_path = "path => void window.jupyterapp.commands.execute('docmanager:open', { path })"
            self.page.evaluate(open_path, name)
        else:
            self.page.goto(f"{self.address}/lab/tree/{name}?token={TOKEN}&reset")
        self.page.wait_for_function(
            "name => window.jupyterapp?.shell.currentWidget?.context?.path === name",
            arg=name,
            timeout=KERNEL_TIMEOUT,
        )
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")

    def close(self):
        """Close the notebook, unsaved, and end its kernel."""
        self.closed = True
        self.page.evaluate(CLOSE)

    def run_all(self):
        """Run all cells until all their widgets are drawn; return their errors.

        JupyterLab asks a new kernel for widgets while the first cells send theirs. Once in CI none was drawn: in
        that case the notebook is opened once more, and the observations are printed.
        """
        for attempt in range(2):
            problems = self.page.evaluate(RUN_ALL, [RUN_TIMEOUT, DRAW_TIMEOUT, UNDRAWN])
            if attempt or not (problems and problems[0].startswith(UNDRAWN)):
                self.ran = True
                return problems
            message = f"{self.name} is opened again: {problems}; JupyterLab said {self.complaints}"
            print(message, file=sys.__stderr__)  # pytest would capture a warning or a print
            self.close()
            self.open(self.name)

    def run_again(self, index):
        """Run only the cell with this index, again and again if need be."""
        self.page.evaluate(RUN_AGAIN, [index, TIMEOUT])

    def begin(self, index):
        """Run the cell with this index; return when Python works on it."""
        self.page.evaluate(BEGIN, index)
        busy = "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'busy'"
        self.page.wait_for_function(busy)

    def save(self):
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")

    def heap(self):
        """Return the bytes that the page holds in JavaScript and elements after garbage collection.

        The least of five readings: work in progress may hold some for a while.
        """
        session, readings = self.page.context.new_cdp_session(self.page), []
        for _ in range(5):
            session.send("HeapProfiler.collectGarbage")
            usage = session.send("Runtime.getHeapUsage")
            readings.append(usage["usedSize"] + usage["embedderHeapUsedSize"])
            self.page.wait_for_timeout(100)
        session.detach()
        return min(readings)

    def theme(self, name):
        self.page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", name)
        self.page.wait_for_function(THEMED, arg=name)


def leaves(address):
    """Return whether a request for this address leaves the machine."""
    url = urlsplit(address)
    return url.scheme not in ("data", "blob") and url.hostname not in LOCAL


def settled(widget):
    """Return the width of a widget, in pixels, once it is stable."""
    return widget.evaluate(SETTLED, widget.page.viewport_size["width"])


def set_width(widget, width):
    """Make a widget this wide, in pixels, by changing the width of the window."""
    page = widget.page
    for _ in range(10):  # the layout may follow late
        short = width - settled(widget)
        if abs(short) < 2:
            return
        size = page.viewport_size
        page.set_viewport_size({**size, "width": size["width"] + short})
    raise AssertionError(f"the widget is not {width} px wide, but {settled(widget)} px")


@contextmanager
def window(widget, size=SIZE):
    """Give the window of a widget this size, or one that is set inside; at the end restore the old one."""
    page = widget.page
    try:
        page.set_viewport_size(size)
        settled(widget)
        yield
    finally:
        page.set_viewport_size(SIZE)
        settled(widget)


@contextmanager
def resized(widget, width):
    """Make a widget this wide, in pixels, for a while."""
    with window(widget):
        set_width(widget, width)
        yield


def wait_until_heard(widget):
    """Wait until Python has handled the request and the note about it is gone, one message after the answer."""
    widget.page.wait_for_function(
        """root => {
            const { model, busy } = root.flashWidget;
            return model.get("heard") === model.get("asked") && !busy.textContent;
        }""",
        arg=widget.element_handle(),
    )


@contextmanager
def served(folder):
    """Serve the subfolder notebooks by a JupyterLab that ignores the user's settings; yield its address.

    Raises RuntimeError, with the end of its log, if it does not start.
    """
    names = (
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "IPYTHONDIR",
        "JUPYTERLAB_SETTINGS_DIR",
    )
    env = os.environ | {name: str(folder / name.lower()) for name in names}
    env |= {"JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"), "JUPYTER_PREFER_ENV_PATH": "1"}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--port=0"]  # 0: one that is free
    command += [f"--config={ROOT / 'tools' / 'jupyter_lab_config.py'}", "--ServerApp.ip=127.0.0.1"]
    command += [f"--ServerApp.root_dir={folder / 'notebooks'}", f"--IdentityProvider.token={TOKEN}"]
    command += ["--LabApp.expose_app_in_browser=True"]
    log = folder / "log"
    with log.open("wb") as out:
        server = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=env, cwd=folder)
    deadline = time.monotonic() + START_TIMEOUT
    try:
        while not (url := _url(folder)):
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _url(folder):
    """Return the address of the JupyterLab that serves the folder, or None if it does not answer yet."""
    try:
        (info,) = (folder / "jupyter_runtime_dir").glob("jpserver-*.json")
        url = f"http://127.0.0.1:{json.loads(info.read_text(encoding='utf-8'))['port']}"
        with DIRECT.open(f"{url}/api?token={TOKEN}", timeout=5):
            return url
    except (OSError, ValueError):
        return None


def path():
    """Return the path of Chromium; raises NoBrowser if it is missing."""
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        raise NoBrowser(f"no browser: none of {', '.join(CHROMIUM)} was found on PATH")
    return found


@contextmanager
def driver():
    """Yield playwright, which a process can start only once; raises NoBrowser if it is missing."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise NoBrowser("playwright is not installed: make setup installs it") from None
    with sync_playwright() as playwright:
        yield playwright


@contextmanager
def chromium(playwright):
    """Yield a Chromium; raises NoBrowser if it is missing."""
    browser = playwright.chromium.launch(executable_path=path(), args=FLAGS)
    yield browser
    browser.close()


IDLE = {}  # by address: a Lab whose notebook was closed. Starting JupyterLab in a page takes five seconds


@contextmanager
def opened(browser, address, folder, name, cells=()):
    """Open a notebook of the folder, a new one if there are cells; yield its Lab, alone in its page."""
    path = folder / "notebooks" / name
    if cells:
        made = [nbformat.v4.new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells]
        nb = nbformat.v4.new_notebook(cells=made)
        nb.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(nb, path)
    assert path.exists()
    lab = IDLE.pop(address, None)
    if lab is None:
        lab = Lab(browser.new_page(viewport=SIZE), address)
    lab.page.set_default_timeout(TIMEOUT)
    lab.open(name)
    yield lab  # after an error inside it is not used again, since its state is unknown
    lab.close()
    IDLE[address] = lab


@contextmanager
def opened_file(browser, path, errors=0, **settings):
    """Yield a saved page, in its own context, once it has logged this many errors.

    At its end it must have requested nothing and logged no more.
    """
    context = browser.new_context(viewport={"width": 1300, "height": 1000}, **settings)
    asked, complaints = [], []

    def answer(route):
        if route.request.url.startswith(("file:", "data:", "blob:")):
            return route.continue_()
        asked.append(route.request.url)
        route.abort()

    try:
        context.set_offline(True)
        context.route("**/*", answer)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.as_uri())
        deadline = time.monotonic() + TIMEOUT / 1000
        while len(complaints) < errors and time.monotonic() < deadline:
            page.wait_for_timeout(50)
        yield page
    finally:
        context.close()
    assert asked == []
    assert len(complaints) == errors, complaints
