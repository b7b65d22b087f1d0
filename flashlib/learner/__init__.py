"""A learner's own code run elsewhere: functions sent to another process, its limits, and recorded loops."""
