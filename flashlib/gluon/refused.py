"""What the compiler or the hardware would not take."""


class Wrong(Exception):
    """Raised for it. id: which kind; fields: of its sentence."""

    def __init__(self, id: str, **fields: object) -> None:
        super().__init__(f"{id} {fields}")
        self.id, self.fields = id, fields
