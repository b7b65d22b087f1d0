"""Right answers to the exercise on registers, in other styles: see `tests.checks.answers`."""


# register_budget: what the producer gives up is added
def my_register_budget(consumers, producer, d, B_c):
    launch = 65536 // 128 // (consumers + 1) & ~7
    given = launch + (launch - producer) // consumers // 8 * 8
    return given, d // 2 + B_c // 2 + B_c // 4


# register_budget: a search, in multiples of 8
def my_register_budget(consumers, producer, d, B_c):
    launch = max(8 * n for n in range(33) if 8 * n * 128 * (consumers + 1) <= 2**16)
    most = (consumers + 1) * launch
    given = 0
    while consumers * (given + 8) + producer <= most:
        given += 8
    bits = 64 * (32 * d + 32 * B_c + 16 * B_c)
    return [given, bits // 32 // 128]


# register_budget: bytes, and remainders
def my_register_budget(consumers, producer, d, B_c):
    each = 256 * 1024 // 4 // ((consumers + 1) * 4 * 32)
    each -= each % 8
    left = ((consumers + 1) * each - producer) // consumers
    needed, _ = divmod(64 * (4 * d + 6 * B_c), 4 * 128)
    return left - left % 8, needed


# register_budget: in threads
def my_register_budget(consumers, producer, d, B_c):
    threads = 128 * (consumers + 1)
    launch = 65536 // threads & ~7
    given = (threads * launch - 128 * producer) // (128 * consumers) & ~7
    return given, (64 * d + 64 * B_c + 32 * B_c) >> 7


# register_budget: by groups, with a helper that rounds down
def my_register_budget(consumers, producer, d, B_c):
    def down(x):
        return x - x % 8

    launch = down(512 // (consumers + 1))
    given = down(((consumers + 1) * launch - producer) // consumers)
    return [given, d // 2 + B_c // 2 + B_c // 4]
