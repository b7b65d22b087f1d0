"""The solution of the exercise on what limits a launch."""


# exercise: name_the_limit
def my_name_the_limit(launch):
    limits = {
        "A": "HBM",  # S and P are stored, and the roof is near
        "B": "programs",  # fewer than multiprocessors
        "C": "loads",  # one stage
        "D": "shared memory",  # one program of four warps, and the registers have room for two
        "E": "registers",  # two programs of four warps, and shared memory has room for six
        "F": "shared memory",  # as D
    }
    return limits[launch]
