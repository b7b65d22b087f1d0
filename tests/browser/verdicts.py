"""The verdicts on the solutions of a chapter and on one way of each known mistake, for Python here and in a page.

The text of `of_chapter` runs in a page too, so it imports what it needs.
"""


def of_chapter(slug):
    """Return [[exercise, id of a mistake or "", outcome, what is recognised]] for the exercises of a chapter."""
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
