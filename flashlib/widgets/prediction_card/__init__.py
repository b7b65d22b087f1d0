"""The card of a prediction: what a learner expects, and at once whether it is right, and why."""
