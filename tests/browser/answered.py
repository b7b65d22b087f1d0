"""A page of the site whose widgets get their answers from the Python of the test."""

import base64

from ipywidgets.widgets.widget import _remove_buffers

from tests.browser.saved import save

WIDGETS: dict = {}  # by name: the widgets that the page's cells show
SHOW = "from tests.browser.answered import WIDGETS\nWIDGETS[{!r}]"

# From now on a widget's requests go to `answerOf`. A widget of a saved page is off until Python answers.
ANSWERED = """(root, name) => {
    const { model } = root.flashWidget;
    model.receive({ asked: 1, heard: 1 });
    model.touched.clear();
    model.answers = true;
    let busy = false;
    model.save_changes = async () => {
        if (busy) return; // requests in the meantime are sent after this answer
        for (busy = true; model.touched.size; ) {
            const changes = Object.fromEntries([...model.touched].map((trait) => [trait, model.get(trait)]));
            model.touched.clear();
            const { state, buffers } = await answerOf(name, changes);
            for (const { path, data } of buffers) {
                const place = path.slice(0, -1).reduce((value, key) => value[key], state);
                const bytes = Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0));
                place[path.at(-1)] = new DataView(bytes.buffer);
            }
            for (const trait of model.touched) delete state[trait]; // the answer to an earlier question
            model.receive(state);
        }
        busy = false;
    };
}"""


def write(widgets, folder):
    """Write a page with these widgets, {name: widget}, to a folder; return its path."""
    WIDGETS.clear()
    WIDGETS.update(widgets)
    return save([SHOW.format(name) for name in widgets], folder)


def answer(name, changes):
    """Return the changes of a widget, and its buffers, after a message of the page."""
    widget = WIDGETS[name]
    before = {trait: getattr(widget, trait) for trait in widget.keys}
    widget.set_state(changes)
    changed = [trait for trait in widget.keys if getattr(widget, trait) is not before[trait]]
    state, paths, buffers = _remove_buffers(widget.get_state([*changed, "asked", "heard"]))
    data = [base64.b64encode(buffer).decode() for buffer in buffers]
    return {
        "state": state,
        "buffers": [{"path": path, "data": one} for path, one in zip(paths, data, strict=True)],
    }


def connect(page):
    """Answer the widgets of a page; return their places, by name."""
    page.expose_function("answerOf", answer)
    places = dict(zip(WIDGETS, page.locator("[data-place] .flash-widget").all(), strict=True))
    for name, root in places.items():
        root.evaluate(ANSWERED, name)
    return places
