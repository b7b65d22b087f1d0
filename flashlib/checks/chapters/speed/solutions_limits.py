"""The solution of the exercise on what limits a launch."""


# exercise: name_the_limit
def my_name_the_limit(launch):
    limits = {
        "A": "HBM",  # S and P are stored, and the roof is near
        "B": "programs",  # fewer than multiprocessors
        "C": "loads",  # one stage
        "D": "shared memory",  # one program of four warps, and the registers have room for two
        "E": "loads",  # a third program would fit, with one stage; with three stages, two still fit
        "F": "shared memory",  # as D; "loads" is right too
    }
    return limits[launch]
