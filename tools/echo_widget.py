"""The smallest widget: a slider asks Python, which answers; nothing is drawn. Its time is JupyterLab's own."""

import anywidget
import traitlets


class Echo(anywidget.AnyWidget):
    """A slider; Python answers with its value. It has the attributes that tools/measure_widgets.py uses."""

    _esm = """
    export default {
      render({ model, el }) {
        const root = document.createElement("div");
        const slider = document.createElement("input");
        slider.type = "range";
        slider.oninput = () => {
          model.set("asked", Number(slider.value));
          model.save_changes();
        };
        model.on("change:answer", () => (root.dataset.loads = Number(root.dataset.loads) + 1));
        root.className = "flash-widget";
        root.dataset.loads = 0;
        root.flashWidget = { model };
        root.append(slider);
        el.append(root);
      },
    };
    """
    asked = traitlets.Int().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)

    def __init__(self):
        super().__init__()
        self.observe(lambda change: self.set_trait("answer", {"value": change.new}), "asked")
