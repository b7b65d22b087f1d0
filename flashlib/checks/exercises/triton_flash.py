"""The exercises of chapter 10."""

CHAPTER = "10_triton_flash"
