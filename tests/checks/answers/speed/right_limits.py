"""Right answers on what limits a launch, in other styles: see `tests.checks.answers`."""


# name_the_limit: by the letter's place
def my_name_the_limit(launch):
    return ("HBM", "programs", "loads", "shared memory", "registers", "loads")["ABCDEF".index(launch)]


# name_the_limit: case by case
def my_name_the_limit(launch):
    if launch == "A":
        return "HBM"
    if launch == "B":
        return "programs"
    if launch == "E":
        return "registers"
    return "loads" if launch == "C" else "shared memory"  # gains less in F


# name_the_limit: match
def my_name_the_limit(launch):
    match launch:
        case "A":
            return "HBM"
        case "B":
            return "programs"
        case "C" | "F":
            return "loads"
        case "D":
            return "shared memory"
    return "registers"
