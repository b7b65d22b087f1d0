"""The exercises of chapter 04."""

CHAPTER = "04_attention"
