"""JupyterLab and Chromium, as the tests here and tools/measure_widgets.py start them."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import nbformat

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
TOKEN = "course"
LOCAL = ("localhost", "127.0.0.1")
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
SIZE = {"width": 1440, "height": 1000}
START_TIMEOUT = 60  # seconds
RUN_TIMEOUT = 120_000  # milliseconds: all cells of a chapter

# Only this is reliable: a run started before the kernel has introduced itself is lost without a word.
RUN_ALL = """async (timeout) => {
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
        if (errors().length) break; // what stands below it will not run
        if (performance.now() - start > timeout) return ["the cells did not end in time", ...errors()];
        await new Promise((done) => setTimeout(done, 100));
    }
    return errors();
}"""

# Run a cell again; where it shows a widget, wait until that has drawn what Python sent.
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

CLOSE = """async () => {
    const panel = window.jupyterapp?.shell.currentWidget;
    await panel?.sessionContext.shutdown();
    panel?.dispose();
}"""


class NoBrowser(Exception):
    """There is nothing to drive, or nothing to drive it with."""


class Lab:
    """JupyterLab in a page of the browser, and what that page complained about and asked for."""

    def __init__(self, page, address):
        self.page, self.address = page, address
        self.complaints, self.outside = [], []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._request)
        page.on("websocket", self._request)

    def _console(self, message):
        if message.type == "error":
            self.complaints.append(f"{message.text} ({message.location.get('url', '')})")

    def _request(self, request):
        url = urlsplit(request.url)
        if url.scheme not in ("data", "blob") and url.hostname not in LOCAL:
            self.outside.append(request.url)

    def open(self, name):
        """Open a notebook, in the JupyterLab that is there if it has started, and wait until it is shown."""
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
            "name => window.jupyterapp?.shell.currentWidget?.context?.path === name", arg=name, timeout=60_000
        )
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")

    def close(self):
        """Close the notebook, unsaved, and end its kernel."""
        self.page.evaluate(CLOSE)

    def run_all(self):
        """Run all cells; return what went wrong in them."""
        errors = self.page.evaluate(RUN_ALL, RUN_TIMEOUT)
        self.page.set_default_timeout(10_000)
        return errors

    def run_again(self, index):
        """Run the cell with this index alone, again and again if need be."""
        self.page.evaluate(RUN_AGAIN, [index, 20_000])

    def save(self):
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")

    def heap(self):
        """Return the bytes that the page holds, of JavaScript and of elements, after garbage is collected."""
        session = self.page.context.new_cdp_session(self.page)
        for _ in range(3):
            session.send("HeapProfiler.collectGarbage")
        usage = session.send("Runtime.getHeapUsage")
        session.detach()
        return usage["usedSize"] + usage["embedderHeapUsedSize"]

    def theme(self, name):
        self.page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", name)
        self.page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=name)
        self.page.wait_for_timeout(300)  # the style sheet follows


@contextmanager
def served(folder):
    """Serve the subfolder notebooks by a JupyterLab that ignores the user's settings; yield its address.

    Raises RuntimeError, with the end of its log, if it does not start.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    names = (
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "IPYTHONDIR",
        "JUPYTERLAB_SETTINGS_DIR",
    )
    env = os.environ | {name: str(folder / name.lower()) for name in names}
    env |= {"JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"), "JUPYTER_PREFER_ENV_PATH": "1"}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", f"--port={port}", "--ServerApp.port_retries=0"]
    command += [f"--config={ROOT / 'tools' / 'jupyter_lab_config.py'}", "--ServerApp.ip=127.0.0.1"]
    command += [f"--ServerApp.root_dir={folder / 'notebooks'}", f"--IdentityProvider.token={TOKEN}"]
    command += ["--LabApp.expose_app_in_browser=True"]
    log = folder / "log"
    with log.open("wb") as out:
        server = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=env, cwd=folder)
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + START_TIMEOUT
    try:
        while not _answers(f"{url}/api?token={TOKEN}"):
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


def _answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def chromium():
    """Yield a Chromium; raises NoBrowser where there is none, or no playwright to drive it."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise NoBrowser("playwright is not installed: make setup installs it") from None
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        raise NoBrowser(f"no browser: none of {', '.join(CHROMIUM)} was found on PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


IDLE = {}  # by address: a Lab whose notebook was closed. To start JupyterLab in a page takes five seconds


@contextmanager
def opened(browser, address, folder, name, cells=()):
    """Open a notebook of the folder, a new one if there are cells; yield its Lab, alone in its page."""
    path = folder / "notebooks" / name
    if cells:
        nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
        nb.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(nb, path)
    assert path.exists()
    lab = IDLE.pop(address, None)
    if lab is None:
        lab = Lab(browser.new_page(viewport=SIZE), address)
    lab.page.set_default_timeout(20_000)
    lab.open(name)
    yield lab  # after an error inside it is not used again: who knows what it shows
    lab.close()
    IDLE[address] = lab
