"""A learner's kernels, recorded as Triton's interpreter runs them.

recording       what is recorded: loads and stores with their masks, and the turns of loops, as plain arrays
recorder        records them, in this process
made            tensors that the learner's function makes: what nothing fills is nan
run             has that done in a process of its own, with limits, and says in a sentence what went wrong
"""
