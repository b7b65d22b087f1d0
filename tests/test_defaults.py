"""An option that is left out means the same in every attention function, from NumPy to Hopper."""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "flashlib"
ATTENTION = [*ROOT.glob("*.py"), *(ROOT / "masks").rglob("*.py"), *(ROOT / "kernels").rglob("*.py")]
LEFT_OUT = {
    "causal": "False", "mask": "None", "scale": "None", "sink": "None", "descriptors": "None", "order": "'fa2'",
    "deterministic": "True", "lengths": "None", "table": "None", "parts": "None", "rotary": "None",
    "grouped": "False", "values": "False", "differentiable": "False", "shared": "0", "parallel_rows": "True",
    "in_registers": "True", "common_wait": "True", "turns": "True",
    "positions": "None", "k_scale": "None", "v_scale": "None", "dlse": "None", "O": "None", "lse": "None",
}  # fmt: skip
ON_PURPOSE = {("deterministic", "autograd.py: hopper_attention"): "False"}  # whoever calls Hopper's wants speed
LADDER = {"B_r": "64", "B_c": "64", "num_warps": "4", "num_stages": "1"}  # frozen: a later rung improves on them
TUNED = dict.fromkeys(LADDER, "None")  # the kernel chooses


def defaults(path):
    """Yield (name of a parameter, its default, the function) for all functions of a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            taken = node.args
            by_position = [*taken.posonlyargs, *taken.args]
            first = len(by_position) - len(taken.defaults)
            pairs = [*zip(by_position[first:], taken.defaults, strict=True)]
            pairs += zip(taken.kwonlyargs, taken.kw_defaults, strict=True)
            yield from ((p.arg, ast.unparse(value), f"{path.name}: {node.name}") for p, value in pairs if value)


def test_an_option_has_one_default():
    seen, other = Counter(), []
    for path in ATTENTION:
        wanted = dict(LEFT_OUT)
        if path.parent.name == "ladder":
            wanted |= LADDER if path.parents[1].name == "kernels" else {}
        elif path.parent == ROOT / "kernels":
            wanted |= TUNED
        for name, value, where in defaults(path):
            if (name, where) in ON_PURPOSE:
                assert value == ON_PURPOSE[name, where]
            elif name in wanted:
                seen[name] += 1
                other += [f"{where}({name}={value})"] * (value != wanted[name])
    assert not other
    assert seen.keys() == LEFT_OUT.keys() | LADDER.keys() and seen["causal"] > 40


def test_an_ablation_has_all_ideas_unless_one_is_turned_off():
    """An idea that the finished kernel uses is on by default in the ablation that can turn it off."""
    for path in (ROOT / "kernels" / "ablations").glob("*.py"):
        switches = [(name, value) for name, value, where in defaults(path) if value in ("True", "False")]
        assert {value for name, value in switches if name != "causal"} <= {"True"}, path.name
