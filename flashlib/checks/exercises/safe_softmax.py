"""The exercises of chapter 02."""

CHAPTER = "02_safe_softmax"
