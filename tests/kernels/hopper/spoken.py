"""What the roles of an interpreted kernel say, to be compared with a protocol, and kernels that are spoilt."""

from flashlib.pipeline import Compute, Product


def spoken(commands):
    """Return commands without what has other names or amounts in the model: tiles and arithmetic."""
    found = []
    for command in commands:
        parts = (getattr(command, name, "") for name in ("barrier", "slot", "phase", "pending", "n_bytes"))
        read = [str(slot) for slot, _ in command.reads] if isinstance(command, Product) else []
        if not isinstance(command, Compute):
            found.append((type(command).__name__, *map(str, parts), *read))
    return found


def spoil(monkeypatch, interpreter, module, function, old, new):
    """Let the interpreter run a function of a kernel's module, or of one that it uses, with a piece replaced."""
    source = module.__dict__[function].src
    assert source.count(old) >= 1
    spoilt = source.replace(old, new)
    functions = interpreter.functions

    def with_spoilt(gl, kernel):
        world = functions(gl, kernel)
        used = vars(world.get(module.__name__.rpartition(".")[2], object))
        inner = used[function].__globals__ if function in used else world
        exec(compile(spoilt, function, "exec"), inner)  # noqa: S102
        if inner is not world:
            used[function] = inner[function]
        return world

    monkeypatch.setattr(interpreter, "functions", with_spoilt)
