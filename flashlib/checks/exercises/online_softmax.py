"""The exercises of chapter 03."""

CHAPTER = "03_online_softmax"
