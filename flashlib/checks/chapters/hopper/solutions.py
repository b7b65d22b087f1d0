"""Solutions of chapter 13."""

from flashlib.pipeline import Arrive, Copy, Expect, Finish, Product, Wait
