"""The solution of the exercise on what limits a launch."""


# exercise: name_the_limit
def my_name_the_limit(launch):
    limits = {
        "A": "HBM",  # S and P are stored, and the roof is near
        "B": "programs",  # fewer than multiprocessors
        "C": "loads",  # one stage more, and two programs still fit
        "D": "shared memory",  # one program, and the registers have room for two
        "E": "registers",  # they spill, and one stage less makes no room
        "F": "loads",  # one program, one tile ahead; "shared memory" is right too
    }
    return limits[launch]
