"""The solution of the exercise on what limits a launch."""


# exercise: name_the_limit
def my_name_the_limit(launch):
    limits = {
        "A": "HBM",  # S and P are stored, and the roof is near
        "B": "programs",  # fewer than multiprocessors
        "C": "loads",  # one stage
        "D": "shared memory",  # one program of four warps, and the registers have room for two
        "E": "loads",  # one stage; "registers" is right too: two programs of eight warps fit as well
        "F": "shared memory",  # as D; "loads" is right too
    }
    return limits[launch]
