"""Races in our kernels, as two sanitizers find them on a GPU: python -m tools.races --out FILE

calls     a small call of each kernel; planted: two kernels with a race
__main__  runs each call under each sanitizer, and records what was found
"""
