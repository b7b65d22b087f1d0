"""The error for what the compiler or the hardware would not accept."""


class Wrong(Exception):
    """The compiler or the hardware would not accept this. id: of the mistake; fields: values for its sentence."""

    def __init__(self, id: str, **fields: object) -> None:
        super().__init__(f"{id} {fields}")
        self.id, self.fields = id, fields
