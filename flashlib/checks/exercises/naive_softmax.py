"""The exercises of chapter 01."""

CHAPTER = "01_naive_softmax"
