"""Which exercises are solved, by one learner and in a class; and learners' notebooks compared with the course."""
