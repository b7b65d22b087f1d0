// The only module that anywidget imports for a widget. A browser keeps a module as long as the page is open, so the script
// of a class, which is a hundred times as large, is imported by the first of its widgets for all of them.
const scripts = (globalThis.flashScripts ??= new Map());

function script(text) {
  if (!scripts.has(text)) {
    const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    scripts.set(
      text,
      import(url).finally(() => URL.revokeObjectURL(url)),
    );
  }
  return scripts.get(text);
}

export default {
  async render(context) {
    const { default: widget } = await script(context.model.get("script"));
    return widget.render(context);
  },
};
