"""A learner's kernels, recorded as Triton's interpreter runs them.

recording       what is recorded: loads and stores with their masks, and the turns of loops, as plain arrays
recorder        records them, in this process
new_tensors     new tensors of the learner's function; uninitialised ones are filled with nan
run             does that in a separate process with limits, and says in a sentence what went wrong
"""
