"""Wrong answers to the exercise on registers: see `tests.checks.answers`."""


# register_budget, other_group: 32 threads throughout
def my_register_budget(consumers, producer, d, B_c):
    launch = 65536 // (32 * (consumers + 1)) // 8 * 8
    given = (launch * (consumers + 1) - producer) // consumers // 8 * 8
    return given, d // 2 + B_c // 2 + B_c // 4


# register_budget, not_subtracted: shared among consumers, as if the producer kept none
def my_register_budget(consumers, producer, d, B_c):
    launch = 65536 // (128 * (consumers + 1)) // 8 * 8
    given = launch + launch // consumers
    return given - given % 8, (d + B_c + B_c // 2) // 2


# register_budget, difference_to_each: what the producer gives up
def my_register_budget(consumers, producer, d, B_c):
    start = 65536 // (128 + 128 * consumers)
    start -= start % 8
    return start + start - producer, d // 2 + B_c // 2 + B_c // 4


# register_budget, all_of_them: without the number at launch
def my_register_budget(consumers, producer, d, B_c):
    left = 65536 - producer * 128
    return left // consumers // 128 // 8 * 8, d // 2 + B_c * 3 // 4


# register_budget, producer_one_warp: one warp at launch, four when registers move
def my_register_budget(consumers, producer, d, B_c):
    warps = 4 * consumers + 1
    launch = 65536 // (32 * warps) // 8 * 8
    given = (launch * (consumers + 1) - producer) // consumers
    return given // 8 * 8, d // 2 + 3 * B_c // 4


# register_budget, keeps_one_warp: threads of warps
def my_register_budget(consumers, producer, d, B_c):
    warps = 4 * consumers + 4
    launch = 2048 // warps // 8 * 8
    given = (warps * launch - producer) // (4 * consumers)
    return given & -8, (2 * d + 3 * B_c) // 4


# register_budget, no_S: P takes the place of S
def my_register_budget(consumers, producer, d, B_c):
    launch = 512 // (consumers + 1) // 8 * 8
    given = ((consumers + 1) * launch - producer) // consumers // 8 * 8
    numbers_32, numbers_16 = 64 * d, 64 * B_c
    return given, (numbers_32 + numbers_16 // 2) // 128


# register_budget, P_in_fp32 and given_not_rounded: two at once
def my_register_budget(consumers, producer, d, B_c):
    launch = 512 // (consumers + 1) // 8 * 8
    given = ((consumers + 1) * launch - producer) // consumers
    return given, 64 * (d + 2 * B_c) // 128


# register_budget, float: halves
def my_register_budget(consumers, producer, d, B_c):
    launch = 512 // (consumers + 1) // 8 * 8
    given = ((consumers + 1) * launch - producer) // consumers // 8 * 8
    return given, 0.5 * d + 0.75 * B_c


# register_budget, capped: at most 240
def my_register_budget(consumers, producer, d, B_c):
    g = consumers + 1
    launch = 65536 // (128 * g) // 8 * 8
    given = min((g * launch - producer) // consumers // 8 * 8, 240)
    return given, d // 2 + 3 * B_c // 4


# register_budget, value: two consumers
def my_register_budget(consumers, producer, d, B_c):
    g = max(consumers, 2) + 1
    launch = 65536 // (128 * g) // 8 * 8
    given = (g * launch - producer) // max(consumers, 2) // 8 * 8
    return given, d // 2 + 3 * B_c // 4
