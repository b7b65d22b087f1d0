"""The questions of the chapter on the Hopper kernel."""

from flashlib.checks.chapters.roles.questions import GPU
from flashlib.checks.engine.prediction import Question


def _launched(warps):
    return GPU.registers // 4 // (32 * warps) // 8 * 8  # 4 bytes each


QUESTIONS = [
    Question(
        "hopper_moves",  # the answer is what `layouts.same` finds
        lambda: {"P": True, "alpha_rows": True, "alpha_columns": False, "S": False},
        "the pictures of S and P are the same, and S and O have the same threads in each row. The number of a row "
        "is held by that row's four threads, and a column has others. With 8 neighbours for each thread, "
        "thread 0 would hold columns 0 to 7 of row 0, where it has columns 0, 1, 8, 9 and so on.",
        hint="Compare the pictures: which thread has the number before, and which after?",
        labels={
            "P": "P, from a sum to an operand",
            "alpha_rows": "alpha, from rows of S to rows of O",
            "alpha_columns": "alpha, from rows of S to columns of O",
            "S": "S, to 8 neighbours for each thread",
        },
        wrong={
            ("P", False): "look at the first two pictures: is any number in another thread?",
            ("alpha_rows", False): "the same four threads share a row of S and a row of O",
            ("alpha_columns", True): "thread 0 has the numbers of rows 0 and 8, and which columns?",
            ("S", True): "thread 0 has two neighbours, and the next two are those of thread 1",
        },
    ),
    Question(
        "hopper_refilled",
        lambda: {"q": False, "k_0": True, "k_1": False},
        "the first product is done, and the second may still run. It reads q and slot 1 of k, so only slot 0 of k "
        "is free.",
        hint="Which slots does the second product read?",
        labels={"q": "q", "k_0": "slot 0 of k", "k_1": "slot 1 of k"},
        wrong={
            ("q", True): "both products read it, and one may still run",
            ("k_0", False): "the first product alone reads it, and that is done",
            ("k_1", True): "the second product reads it, and may still run",
        },
    ),
    Question(
        "hopper_launch_registers",
        lambda: {"warps_12": _launched(12), "first_role": 3 * _launched(12) - 200 - 80},
        "12 warps have 384 threads, and 65536 / 384 = 170.7, so 168. Threads of the three groups of four warps "
        "have 3 * 168 = 504 together. The second consumer takes 200 and the producer's group 80, so 224 are left.",
        hint="Divide by the threads and round down to a multiple of 8. Then take a thread of each group of four "
        "warps: what have they together, and what do the others keep?",
        wrong={
            ("warps_12", 170): "it must be a multiple of 8",
            ("warps_12", 171): "it must be a multiple of 8, and there are not 171 * 384 registers",
            ("warps_12", 176): "384 threads with 176 registers each need 67584, so round down",
            ("warps_12", 160): "168 * 384 = 64512 registers fit too",
            ("warps_12", 5456): "a warp has 32 threads",
            ("first_role", 168): "registers move: the others end with 200 and 80, and not with 168",
            ("first_role", 200): "200 is the second consumer's: the first role is in no list",
            ("first_role", 112): "200 is the second consumer's, and the first role is alone with the rest",
            ("first_role", 232): "only what the program has at its start can move: 168 in each thread",
            ("first_role", 304): "the producer keeps registers too",
            ("first_role", 284): "registers move in groups of four warps: the producer's one counts as four",
            ("first_role", 56): "a program has three groups: two consumers and the producer's",
        },
        labels={"warps_12": "at the start", "first_role": "the first role"},
    ),
]
