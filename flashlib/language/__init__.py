"""The course in another language: what a reader sees in widgets, cards and verdicts is looked up in one file.

The code contains English, as ordinary strings, f-strings, JavaScript templates and the tables of mistakes. Another
language is a JSON file, {English: translated}: `de.json` in this folder, or a file anywhere. FLASHLIB_LANGUAGE
names it, as "de" or a path, before flashlib is imported; no code is changed. What is not in the file stays
English.

    texts          the file that was chosen, and `say`, which looks a text up
    reading        which strings are texts, and how values stand in them: "row {0} of {1}"
    python         the texts of a Python module, and the module with them translated
    script         the same of JavaScript
    phrases        lists, "a, b and c", counts, "1 row", "2 rows", and sentences that depend on a count
    loading        modules of flashlib are translated as they are imported

A sentence with values is looked up before they are filled in: when a module is loaded, or a widget's script is
joined. A single word, such as "row" or "step", may also be code, so it is looked up where it is shown: by `say` in
a verdict, by `say` of widgets/shared/language.js on a page. `python -m tools.language de` writes all texts to a
file, to be filled in. Prose is not handled here: it is in the notebooks.
"""
