"""The widths that a widget must fit, its largest height at each, and a check for misplaced parts."""

from tests.browser.probes import MISPLACED

WIDTHS = 390, 700, 930, 1366  # px: a phone, a tablet, JupyterLab on a laptop with its side bar, and without
LAPTOP = 930  # px wide
AMOUNTS = [
    ("few", WIDTHS[0]),
    *(("all", width) for width in WIDTHS[1:]),
]  # test_every_setting.py: others, in each run
HIGH = 640  # px: if higher, a control and what it changes would not be together on a screen of 1366 x 768
HIGHER = {"RingPlayer"}  # it has more to show, with what most controls change at the top

# What is misplaced in a widget, as it is and, if it plays, at two moments: sentences.
OUT_OF_PLACE = f"""root => {{
    const {{ transport }} = root.flashWidget;
    const before = transport?.position;
    const misplaced = (when) => ({MISPLACED})(root).map((one) => `${{when}}: ${{one}}`);
    const found = misplaced("as it stands");
    for (const part of transport ? [0.3, 1] : []) {{
        transport.seek(Math.round(part * transport.last));
        found.push(...misplaced(`after ${{100 * part}}%`));
    }}
    transport?.seek(before);
    return found;
}}"""
