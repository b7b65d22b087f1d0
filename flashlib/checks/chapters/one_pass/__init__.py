"""One pass: FlashAttention by hand."""
