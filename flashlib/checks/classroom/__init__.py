"""Which exercises are solved, by one learner and in a class; and what learners' notebooks have of the course."""
