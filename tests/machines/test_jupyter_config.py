"""JupyterLab as `make lab` starts it: on the first chapter, styled for the course, and on this machine only."""

import os
from pathlib import Path

import pytest

pytest.importorskip("jupyter_server")
from traitlets.config import Config  # noqa: E402

from flashlib.chapters import CHAPTERS  # noqa: E402
from tools import widget_states  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def config():
    path, c = ROOT / "tools" / "jupyter_lab_config.py", Config()
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), {"get_config": lambda: c, "__file__": str(path)})
    return c


def test_it_opens_the_first_chapter(config):
    assert config.LabApp.default_url == f"/lab/tree/{CHAPTERS[0].slug}.ipynb"


def test_it_requests_nothing_from_other_machines(config):
    assert config.LabApp.news_url is None and config.LabApp.extension_manager == "readonly"
    assert config.LabApp.check_for_updates_class.endswith("NeverCheckForUpdate")


def test_settings_and_styles_are_found(config):
    (styles,) = config.ServerApp.tornado_settings["static_custom_path"]
    assert config.LabApp.custom_css is True and (Path(styles) / "custom.css").is_file()
    assert (Path(config.LabApp.app_settings_dir) / "overrides.json").is_file()


def test_states_of_widgets_are_saved_and_a_container_may_run_as_root(config):
    assert config.ContentsManager.pre_save_hook is widget_states.complete
    assert config.ServerApp.allow_root == (getattr(os, "geteuid", lambda: 1)() == 0)
    assert "nodelay" in "".join(config.ServerApp.kernel_websocket_connection_class.connect.__code__.co_names)
