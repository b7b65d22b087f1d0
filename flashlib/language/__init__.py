"""The course in another language: what a reader sees in widgets, cards and verdicts, looked up in one file.

English stands in the code, as ordinary strings, f-strings, JavaScript's templates and the tables of mistakes.
Another language is a file of JSON, {English: translated}: `de.json` in this folder, or one anywhere.
FLASHLIB_LANGUAGE names it, "de" or a path, before flashlib is imported; no code is touched. What is not in the
file stays English.

    texts          the file that was chosen, and `say`, which looks a text up
    reading        which strings are texts, and how values stand in them: "row {0} of {1}"
    python         the texts of a Python module, and the module with them translated
    script         the same of JavaScript
    phrases        lists, "a, b and c", counts, "1 row", "2 rows", and sentences that depend on a count
    loading        modules of flashlib are translated as they are imported

A sentence with values is looked up before they are filled in: where a module is loaded, or a widget's script is
joined. A single word may be code as well, "row" or "step". So it is looked up where it is shown: by `say` in a
verdict, by `say` of widgets/shared/language.js on a page. `python -m tools.language de` writes all texts into a
file, to be filled. Prose is not here: it stands in the notebooks.
"""
