"""A learner's own code, run elsewhere: functions sent to another process, and loops over tiles recorded."""
