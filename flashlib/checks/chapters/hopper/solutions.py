"""The solution of the exercise on registers."""


# exercise: register_budget
def my_register_budget(consumers, producer, d, B_c):
    groups = consumers + 1  # of four warps, 128 threads
    launch = 65536 // (128 * groups) // 8 * 8
    given = (groups * launch - producer) // consumers // 8 * 8
    needed = (64 * d + 64 * B_c + 64 * B_c // 2) // 128  # O_acc, S and P
    return given, needed
