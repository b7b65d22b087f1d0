"""A learner's own code, run elsewhere: functions sent to another process, held to limits, and loops recorded."""
