"""The exercises of chapter 05."""

CHAPTER = "05_one_pass"
