"""JavaScript with which several test modules examine a widget on the page."""

from pathlib import Path

import axe_playwright_python

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
CONTROLS = r"button|checkbox|combobox|grid|link|listbox|radio|searchbox|slider|spinbutton|switch|tab|textbox"

# What axe finds in one widget or several; the rest of the page belongs to JupyterLab.
VIOLATIONS = """async (widgets) => {
    const { violations, passes } = await axe.run(widgets);
    if (!passes.length) return ["axe has looked at nothing"];
    return violations.flatMap(({ id, help, nodes }) => nodes.map(({ html }) => `${id}: ${help}: ${html}`));
}"""

# How many pixels of the first picture or widget on a page, or in a notebook, are in view; Infinity if it is whole.
# The card of a prediction is nothing to see.
FIRST_PICTURE = """() => {
    const pictures = ":is(img, svg, .flash-widget:not(.flash-card))";
    const all = document.querySelectorAll(`:is(main, .jp-OutputArea) ${pictures}`);
    const first = [...all].find((e) => e.checkVisibility() && e.getBoundingClientRect().height > 80);
    const { top, bottom } = first?.getBoundingClientRect() ?? { top: innerHeight, bottom: innerHeight + 1 };
    return bottom <= innerHeight ? Infinity : innerHeight - top;
}"""
FIRST_SCREEN = {"width": 1280, "height": 800}
ENOUGH = 120  # pixels of it
# Chapters that open otherwise: one's first picture answers its first question, one shows what a model writes.
NO_PICTURE_FIRST = "attention", "real_models"

# Where Tab must stop: at elements that are visible, enabled and focusable, and at one radio button of each group.
STOPS = """root => {
    const all = "a[href], button, input, select, textarea, summary, [tabindex], [contenteditable]";
    const radios = (e) => [...root.querySelectorAll("input[type=radio]")].filter(({ name }) => name === e.name);
    const stop = (e) => (radios(e).find(({ checked }) => checked) ?? radios(e)[0]) === e;
    return [...root.querySelectorAll(all)].filter(
        (e) => e.tabIndex >= 0 && !e.matches(":disabled") && e.checkVisibility({ visibilityProperty: true }) &&
            (e.type !== "radio" || stop(e)),
    );
}"""

FOCUS = """root => {
    const e = document.activeElement;
    return !root.contains(e) ? null : e === root ? "root" : String(window.stops.indexOf(e));
}"""

# Words or marks outside the widget, in a box too small for them, or on other words; scrolling parts may be larger.
MISPLACED = """root => {
    const found = [];
    const report = (why, e) => found.push(`${why}: ${e.outerHTML.slice(0, 150)}`);
    const looks = new Map();
    const look = (e) => looks.get(e) ?? looks.set(e, getComputedStyle(e)).get(e);
    const scrolls = (e) => /auto|scroll/.test(look(e).overflowX);
    const cuts = (e) => /paint|strict|content/.test(look(e).contain);
    const reachable = (e) => e.tabIndex >= 0 || e.querySelector("button, input, select, textarea, [tabindex]");
    if (root.scrollWidth > root.clientWidth) report(`${root.scrollWidth} px in ${root.clientWidth} px`, root);
    const box = root.getBoundingClientRect();
    for (const e of root.querySelectorAll("*")) {
        if (e.closest(".flash-spoken, defs") || !e.checkVisibility({ visibilityProperty: true })) continue;
        const style = look(e);
        const own = e.getBoundingClientRect();
        let holder = e.parentElement;
        while (holder !== root && !scrolls(holder)) holder = holder.parentElement;
        const inside = own.left >= box.left - 1 && own.right <= box.right + 1;
        const beyond = !inside && own.width > 0 && style.opacity !== "0";
        if (beyond && holder === root) report("beyond the edge", e);
        if (e instanceof SVGElement || style.display === "inline" || e.matches("input, select")) continue;
        const [wide, high] = [e.scrollWidth - e.clientWidth, e.scrollHeight - e.clientHeight];
        if (scrolls(e)) {
            if ((wide > 1 || high > 1) && !reachable(e)) report("scrolls by pointer only", e);
        } else if (style.overflowX !== "visible") {
            if (wide > 1 || high > 1) report(`clipped, ${wide} and ${high} px too large`, e);
        } else if (wide > 1 && [...e.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) {
            report(`text ${wide} px wider than its box`, e);
        }
    }
    const holders = "svg, .flash-panel, .flash-button, .flash-widget";
    const within = (a, b) =>
        a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 2 && a.bottom <= b.bottom + 2;
    const texts = [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const e = node.parentElement;
        if (!node.data.trim() || e.closest("pre, .flash-spoken, option, sub, sup")) continue;
        if (!e.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        let own = e;
        while (!own.matches(holders) && !scrolls(own) && !cuts(own)) own = own.parentElement;
        const limits = scrolls(own) ? null : own.getBoundingClientRect();
        for (const box of range.getClientRects()) {
            if (limits && box.width > 0 && !within(box, limits)) report("text outside of its box", e);
            texts.push([box, e]);
        }
    }
    texts.sort(([a], [b]) => a.top - b.top);
    texts.forEach(([a, e], k) => {
        for (let n = k + 1; n < texts.length && texts[n][0].top < a.bottom; n++) {
            const [b, other] = texts[n];
            const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
            const height = Math.min(a.bottom, b.bottom) - b.top;
            if (width <= 1 || height <= Math.min(a.height, b.height) / 3) continue;
            report(`${e.outerHTML.slice(0, 80)} on the text of`, other);
        }
    });
    return found;
}"""

MOVING = """root => [
    ...root.getAnimations({ subtree: true }).map((animation) => String(animation)),
    ...[root, ...root.querySelectorAll("*")].flatMap((e) => [null, "::before", "::after"].flatMap((part) => {
        const { transitionDuration, animationName } = getComputedStyle(e, part);
        const still = transitionDuration.split(", ").every((time) => time === "0s") && animationName === "none";
        return still ? [] : [`${e.outerHTML.slice(0, 150)} ${part}: ${transitionDuration} ${animationName}`];
    })),
]"""

# Rules of the widgets' style sheets that could reach other elements. They may depend on a widget's surroundings:
# on the theme, or the text above.
FAR_REACHING = """() => {
    const found = [];
    const ours = (selector) => /^[.]flash-|[)] [.]flash-/.test(selector);
    const look = (rule) => {
        if (rule instanceof CSSStyleRule) {
            const selectors = rule.selectorText.split(/,(?![^(]*[)])/).map((selector) => selector.trim());
            found.push(...selectors.filter((selector) => !ours(selector)));
            const reached = [...document.querySelectorAll(rule.selectorText)];
            const outside = reached.find((e) => !e.closest(".flash-widget"));
            if (outside) found.push(`${rule.selectorText}: ${outside.outerHTML.slice(0, 150)}`);
        } else if (rule instanceof CSSGroupingRule) [...rule.cssRules].forEach(look);
        else if (!rule.name?.startsWith("flash-")) found.push(rule.cssText); // @keyframes have a name
    };
    const sheets = [...document.querySelectorAll('style[id^="flashlib."]')].map((style) => style.sheet);
    sheets.flatMap(({ cssRules }) => [...cssRules]).forEach(look);
    return [sheets.length, found];
}"""
