"""Which exercises are solved: by one learner, and in the notebooks of a class."""
