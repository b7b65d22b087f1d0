"""The verdicts on a chapter's solutions and on one form of each known mistake, from Python here or on a page.

The text of `of_chapter` also runs on a page, so it imports what it needs.
"""


def of_chapter(slug):
    """Return [[exercise, id of a mistake or "", outcome, mistake recognised]] for the exercises of a chapter."""
    from flashlib.checks.engine import solutions
    from flashlib.checks.engine.exercises import EXERCISES

    found = []
    for name, exercise in EXERCISES.items():
        if exercise.chapter != slug:
            continue
        answers = [("", solutions.program(name))]
        for mistake in exercise.known.mistakes():
            for way in mistake.ways[:1]:
                answers.append((mistake.id, exercise.known.program.edited(way)))
        for mistake, program in answers:
            verdict = exercise(program.function, seed=1)
            found.append([name, mistake, str(verdict.outcome), verdict.mistake])
    return found
