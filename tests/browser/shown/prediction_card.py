"""What a prediction card shows when answers are typed into it."""


def focused(card):
    return card.evaluate("(card) => card.contains(document.activeElement) && document.activeElement.className")


def outcome(card):
    return card.get_attribute("data-outcome")


def check(one):
    """The card of the question first_overflow is answered by keyboard: wrong, wrong again, shown, then right."""
    keyboard = one.page.keyboard
    asks = one.locator(".flash-card-asks").inner_text()
    assert "What is the smallest whole number x for which e" in asks and asks.endswith("?")
    assert one.locator(".flash-card-check").inner_text() == "Check", "the rest is said once, in Start here"
    assert outcome(one) == "open" and one.locator(".flash-card-verdict").inner_text() == ""
    one.get_by_label("fp16").focus()
    for text in ("12", "88", "710"):
        keyboard.type(text)
        keyboard.press("Tab")
    keyboard.press("Enter")  # the button
    assert outcome(one) == "wrong"
    text = one.locator(".flash-card-verdict").inner_text()
    assert "fp32: not 88 (log(3.4e38) is 88.72: the exponential of 88 is finite)" in text
    assert "Hint: " in text and "fp16: not" not in text and "89" not in text
    assert focused(one) == "flash-card-verdict", "a screen reader says it, and Tab goes to the buttons"
    keyboard.press("Tab")
    keyboard.press("Enter")  # try again
    assert one.get_by_label("fp32").evaluate("(field) => field === document.activeElement")
    assert one.get_by_label("fp32").get_attribute("aria-invalid") == "true"
    keyboard.press("Enter")
    keyboard.press("Tab")
    keyboard.press("Tab")
    keyboard.press("Enter")  # show the answer
    text = one.locator(".flash-card-verdict").inner_text()
    assert "fp32: not 88, but 89" in text and "exp passes the largest number" in text and "Hint" not in text
    assert focused(one) == "flash-card-verdict"
    one.get_by_label("fp32").fill("89")
    keyboard.press("Enter")  # in the field
    assert outcome(one) == "right"
