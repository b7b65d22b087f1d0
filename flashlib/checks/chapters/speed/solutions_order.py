"""The solution of the exercise on the order of row blocks."""


# exercise: block_order
def my_block_order(tile, T_r, section):
    first = tile // (section * T_r) * section  # head of its section
    place = tile % (section * T_r)
    return first + place % section, T_r - 1 - place // section
