"""Right answers on what limits a launch, in other styles: see `tests.checks.answers`."""


# name_the_limit: by the letter's place
def my_name_the_limit(launch):
    return ("HBM", "programs", "loads", "shared memory", "loads", "shared memory")["ABCDEF".index(launch)]


# name_the_limit: case by case
def my_name_the_limit(launch):
    if launch == "A":
        return "HBM"
    if launch == "B":
        return "programs"
    if launch in ("D", "F"):
        return "shared memory"
    return "loads"


# name_the_limit: match
def my_name_the_limit(launch):
    match launch:
        case "A":
            return "HBM"
        case "B":
            return "programs"
        case "C" | "E" | "F":  # gains less in F
            return "loads"
    return "shared memory"
