"""Wrong answers on what limits a launch: see `tests.checks.answers`."""


# name_the_limit, unnamed: other words
def my_name_the_limit(launch):
    return {"A": "bytes", "B": "too few programs"}.get(launch, "waits")


# name_the_limit, unnamed: the number of a limit
def my_name_the_limit(launch):
    return "ABCDEF".index(launch)


# name_the_limit, unnamed: a misspelt name after three right ones
def my_name_the_limit(launch):
    return {"A": "HBM", "B": "programs", "C": "loads"}.get(launch, "Shared memory")


# name_the_limit, B_few: whatever is full
def my_name_the_limit(launch):
    return {"A": "HBM", "B": "registers", "C": "registers", "D": "shared memory"}.get(launch, "registers")


# name_the_limit, C_nothing_ahead: whatever makes room for a program more
def my_name_the_limit(launch):
    return {"A": "HBM", "B": "programs"}.get(launch, "shared memory")


# name_the_limit, E_spills: loads where stages are few, and otherwise shared memory
def my_name_the_limit(launch):
    stages = dict(C=2, D=4, E=3, F=2)
    if launch in stages:
        return "loads" if stages[launch] < 3 else "shared memory"
    return "HBM" if launch == "A" else "programs"


# name_the_limit, F_ahead: more warps wherever few are on a multiprocessor
def my_name_the_limit(launch):
    known = dict(zip("ABCD", ("HBM", "programs", "loads", "shared memory"), strict=True))
    return known.get(launch, "registers")


# name_the_limit, D_plenty: what limits one of the others
def my_name_the_limit(launch):
    return {"A": "HBM", "C": "loads"}.get(launch, "programs")


# name_the_limit, raises: a launch is left out
def my_name_the_limit(launch):
    return {"A": "HBM"}[launch]


# name_the_limit, nothing_returned: nothing returned
def my_name_the_limit(launch):
    {"A": "HBM"}.get(launch)
