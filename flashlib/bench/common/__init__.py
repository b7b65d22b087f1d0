"""What all benchmarks share: the harness that verifies and times, problems, peers, records of runs."""
