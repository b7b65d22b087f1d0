"""The verdicts on solutions and on one form of each known mistake, from Python here or on a page.

The text of `of_exercises` also runs on a page, so it imports what it needs.
"""


def of_exercises(names):
    """Return [[exercise, id of a mistake or "", outcome, mistake recognised]] for these exercises."""
    from flashlib.checks.engine import solutions
    from flashlib.checks.engine.exercises import EXERCISES

    found = []
    for name in names:
        exercise = EXERCISES[name]
        answers = [("", solutions.program(name))]
        for mistake in exercise.known.mistakes():
            for way in mistake.ways[:1]:
                answers.append((mistake.id, exercise.known.program.edited(way)))
        for mistake, program in answers:
            verdict = exercise(program.function, seed=1)
            found.append([name, mistake, str(verdict.outcome), verdict.mistake])
    return found
