"""JupyterLab as `make lab` starts it: on the first chapter, and with no request to another machine."""

import os
import sys
from pathlib import Path

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from flashlib.environment import for_notebooks  # noqa: E402
from tools import widget_states  # noqa: E402

for_notebooks(os.environ)  # kernels inherit it

c = get_config()  # noqa: F821

c.LabApp.default_url = "/lab/tree/00_start_here.ipynb"
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
c.LabApp.extension_manager = "readonly"
c.LabApp.app_settings_dir = str(Path(__file__).with_name("lab_settings"))
c.LabApp.custom_css = True
c.ServerApp.tornado_settings = {
    "static_custom_path": [str(Path(__file__).with_name("lab_style"))]
}  # which has custom.css
c.ContentsManager.pre_save_hook = widget_states.complete
c.ServerApp.allow_root = hasattr(os, "geteuid") and os.geteuid() == 0  # as one often is in a container


class PromptConnection(ZMQChannelsWebsocketConnection):
    """The page's connection to a kernel, which sends each message immediately.

    By default, the second of two small messages waits until the first is acknowledged, some 40 ms: more
    than a widget takes to answer a slider.
    """

    async def connect(self):
        self.websocket_handler.set_nodelay(True)
        return await super().connect()


c.ServerApp.kernel_websocket_connection_class = PromptConnection
