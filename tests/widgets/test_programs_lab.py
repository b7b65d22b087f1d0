"""What ProgramsLab shows is what Triton's interpreter does with the same lines, and what a matrix holds."""

import importlib.util
import itertools

import numpy as np
import pytest

pytest.importorskip("anywidget")

from flashlib.widgets import ProgramsLab
from flashlib.widgets.programs_lab import drawn_accesses, kernels, tensors, words
from flashlib.widgets.programs_lab.tensors import ELEMENT, MASKED, NOWHERE, OTHER, OUTSIDE, Tensor

SETTINGS = [
    *({"kernel": "vector", "N": N, "BLOCK": BLOCK} for N, BLOCK in ((10, 4), (1, 8), (16, 16))),
    *({"kernel": "tile", "N": 7, "BLOCK": BLOCK, "transposed": across} for BLOCK in (2, 8) for across in (0, 1)),
    {"kernel": "tile", "N": 5, "stride_r": 1, "stride_c": 5, "transposed": True},
    *({"kernel": name, "N": 3, "stride_r": stride} for name in ("softmax", "loop") for stride in (6, 9)),
    {"kernel": "loop", "N": 2, "BLOCK": 1},
]
SETTINGS = [
    {**one, "mask": mask, "transposed": bool(one.get("transposed"))} for one in SETTINGS for mask in (True, False)
]


def shown(**setting):
    lab = ProgramsLab(**setting)
    assert not lab.problem
    return lab.result


def places(result, access):
    """Return (offset, state, row, column) of each place of an access."""
    every = np.frombuffer(result["buffer"], "<i4").reshape(-1, 4)
    return every[access["start"] :][: int(np.prod(access["shape"]))].tolist()


def done(result):
    """Return what each program does, in order: the line, pointer and kind, and its offsets and masks."""
    return [
        (
            *(result["programs"][one["program"]]["number"][:2], one["line"], one["kind"]),
            result["tensors"][one["tensor"]]["name"],
            [(offset, state != MASKED) for offset, state, _, _ in places(result, one)],
        )
        for one in result["accesses"]
    ]


@pytest.fixture(scope="module")
def triton_kernels(tmp_path_factory):
    """The kernels as they are shown, from a file, which Triton reads: {text: kernel}."""
    pytest.importorskip("triton")
    import flashlib.kernels  # noqa: F401

    texts = dict.fromkeys(kernels.launch(ProgramsLab(**one).result["setting"]).text for one in SETTINGS)
    found = {}
    for number, text in enumerate(texts):
        path = tmp_path_factory.mktemp("kernels") / f"shown{number}.py"
        lines = text.splitlines()
        path.write_text("\n".join(["import triton; import triton.language as tl", *lines]), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(f"shown{number}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found[text] = getattr(module, lines[1].split("(")[0].removeprefix("def "))
    return found


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_triton_does_what_is_shown_with_the_lines_and_the_launch_that_are_shown(setting, triton_kernels):
    torch = pytest.importorskip("torch")
    from flashlib.learner.kernels.recorder import record

    result = shown(**setting)
    launch = kernels.launch(result["setting"])
    given = {
        name.removesuffix("_ptr"): torch.zeros(max(one.span[1], 1)).as_strided(one.shape, one.strides)
        for name, one in launch.tensors.items()
    }
    kernel = triton_kernels[launch.text]
    recording = record(lambda: eval(result["launch"], {kernel.fn.__name__: kernel, **given}))
    assert recording.error == ""
    of_triton = [
        (
            list(recording.programs[one.program].at[:2]),
            one.line - 1,  # of the file, which has a line before
            "store" if one.is_store else "load",
            one.pointer,
            list(
                zip(
                    one.offsets.ravel().tolist(),
                    np.broadcast_to(one.mask, one.offsets.shape).ravel().tolist(),
                    strict=True,
                )
            ),
        )
        for one in recording.accesses
    ]
    assert sorted(of_triton) == sorted(done(result)) and len(of_triton) >= 2


@pytest.mark.parametrize(
    "N, BLOCK, strides, across", [*itertools.product((1, 10), (4, 16), ((6, 1), (1, 10), (8, 1)), (False, True))]
)
def test_each_program_copies_its_tile_of_the_matrix(N, BLOCK, strides, across):
    result = shown(kernel="tile", N=N, BLOCK=BLOCK, stride_r=strides[0], stride_c=strides[1], transposed=across)
    for one in result["accesses"]:
        i, j, _ = result["programs"][one["program"]]["number"]
        tile = list(itertools.product(range(i * BLOCK, (i + 1) * BLOCK), range(j * BLOCK, (j + 1) * BLOCK)))
        stride_r, stride_c = strides
        if one["kind"] == "store":
            stride_r, stride_c = (1, N) if across else (6, 1)
        expected = [
            (
                r * stride_r + c * stride_c,
                ELEMENT if r < N and c < 6 else MASKED,
                *((c, r) if across and one["kind"] == "store" else (r, c)),
            )
            for r, c in tile
        ]
        assert list(map(tuple, places(result, one))) == expected
    assert result["tensors"][1]["stored"] == "Together, the programs store each element of Y_ptr once."


def states(result, kind):
    return [state for one in result["accesses"] if one["kind"] == kind for _, state, _, _ in places(result, one)]


def test_without_a_mask_it_is_said_which_offsets_are_out_of_bounds_and_by_how_much():
    result = shown(mask=False)
    faults = {(one["program"], one["fault"]) for one in result["accesses"] if one["fault"]}
    said = "Out of bounds: offsets 10 and 11 of {0} are up to 2 past the end. {0} has the offsets 0 to 9."
    assert faults == {(2, said.format(name)) for name in ("x_ptr", "y_ptr", "out_ptr")}
    assert [one["bad"] for one in result["programs"]] == [False, False, True] and result["opens"] == 2
    assert [text for number, _, _, text in result["values"] if number == 2][2:] == ["✕ 2 out of bounds"] * 3
    assert states(result, "store") == [ELEMENT] * 10 + [OUTSIDE] * 2


@pytest.mark.parametrize(
    "stride, state, said",
    [
        (6, OTHER, "Past an edge: offsets 6 and 7 of X_ptr are elements of another row."),
        (7, OUTSIDE, "Out of bounds: offset 6 lies between the elements of X_ptr."),
        (8, OUTSIDE, "Out of bounds: offsets 6 and 7 lie between the elements of X_ptr."),
    ],
)
def test_past_the_end_of_a_row_is_another_row_or_nothing(stride, state, said):
    result = shown(kernel="loop", N=3, stride_r=stride, mask=False)
    first = next(one for one in result["accesses"] if one["fault"])
    assert said in first["fault"] and (first["program"], first["turn"]) == (0, 1)
    assert [one[1] for one in places(result, first)][:3] == [ELEMENT, ELEMENT, state]


def test_a_loop_has_turns_and_each_line_its_value():
    result = shown(kernel="loop", N=3, BLOCK=2)
    turns = [(one["line"], one["turn"]) for one in result["accesses"] if one["program"] == 1]
    load, store = sorted({line for line, _ in turns})
    assert turns == [(load, 0), (load, 1), (load, 2), (store, 0)]
    values = {(turn, text) for number, _, turn, text in result["values"] if number == 1}
    assert values == {
        (0, "row = 1"),
        *((turn, f"start = {2 * turn}") for turn in range(3)),
        *((turn, f"c = [{2 * turn} {2 * turn + 1}]") for turn in range(3)),
        *((turn, "mask = [1 1]") for turn in range(3)),
    }


@pytest.mark.parametrize("kernel", kernels.KERNELS)
def test_without_elements_nothing_runs(kernel):
    result = shown(kernel=kernel, N=0)
    assert result["grid"]["words"].endswith("The grid has no programs, so nothing runs.")
    assert result["grid"]["choosing"] == "No program runs."
    assert result["programs"] == result["accesses"] == [] and result["opens"] == 0
    assert "none out of bounds" in repr(ProgramsLab(kernel, N=0))


def test_the_sentence_of_a_program():
    result = shown()
    assert result["grid"]["words"] == (
        "A program is one run of the kernel; the grid has 3 programs, which differ in their number."
    )
    assert result["grid"]["choosing"] == "3 programs run the same code. Click one:"
    one = shown(N=3)["grid"]
    assert one["words"] == "A program is one run of the kernel; the grid has 1 program."
    assert one["choosing"] == "1 program runs the code."
    assert result["programs"][2]["name"] == "program 2"
    assert result["programs"][2]["words"] == (
        "Program 2 loads offsets 8 and 9 of x_ptr and y_ptr, and stores offsets 8 and 9 of out_ptr. "
        "The mask cuts off offsets 10 and 11, which do not exist."
    )
    rows = shown(kernel="softmax")["programs"]
    assert rows[0]["words"].endswith("The mask cuts off offsets 6 and 7.")  # which are the next row's
    tile = shown(kernel="tile")["programs"]
    assert tile[-1]["name"] == "program (2, 1)"
    assert tile[0]["words"].startswith("Program (0, 0) loads 16 offsets in 4 runs of X_ptr, and stores")
    assert tile[-1]["words"].endswith("The mask cuts off 12 of 16 places.")


def test_repr():
    assert repr(ProgramsLab("loop", N=2, mask=False)) == (
        "ProgramsLab(kernel='loop', N=2, BLOCK=4, stride_r=6, mask=False: 2 programs, 12 places loaded, 2 stored, "
        "0 masked, 4 out of bounds)"
    )


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: ProgramsLab(B=4), "unexpected keyword argument 'B'"),
        (lambda: ProgramsLab("tile", 3), "'tile', which takes no arguments and no grid"),
        (lambda: ProgramsLab(grid=(3,)), "'vector', which takes no arguments and no grid"),
    ],
)
def test_arguments_that_no_kernel_of_the_lab_takes(call, error):
    with pytest.raises(TypeError, match=error):
        call()


@pytest.mark.parametrize(
    "kernel, said",
    [
        (5, "kernel is 5; there are 'vector', 'tile', 'softmax' and 'loop', or pass a kernel under @triton.jit."),
        (places, "places is a function; pass a kernel: a function under @triton.jit."),
        (
            type("Autotuner", (), {"fn": places})(),
            "places is autotuned, and nothing can be timed in the interpreter",
        ),
        (
            type("Heuristics", (), {"fn": places})(),
            "places is under @triton.heuristics; pass the kernel below, places.fn, with what they choose",
        ),
        (type("GluonJITFunction", (), {"fn": places})(), "places is a kernel in Gluon; pass one in Triton"),
    ],
)
def test_what_is_no_kernel(kernel, said):
    assert ProgramsLab(kernel, grid=(1,)).problem.startswith(said)


# ---- the elements of tensors


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor((5,), (3,)),
        Tensor((2, 3), (1, 2)),
        Tensor((2, 3, 4), (20, 5, 1)),
        Tensor((), ()),
        Tensor((2, 2), (0, 1)),
    ],
    ids=str,
)
def test_each_offset_is_the_element_that_it_is(tensor):
    of_offset = {}
    for number, index in enumerate(np.ndindex(tensor.shape)):
        of_offset.setdefault(sum(n * stride for n, stride in zip(index, tensor.strides, strict=True)), number)
    offsets = np.arange(-3, tensor.span[1] + 3)
    assert tensors.elements(tensor, offsets).tolist() == [of_offset.get(offset, -1) for offset in offsets.tolist()]


def test_an_offset_has_its_place_in_the_matrix_of_the_first():
    heads = Tensor((2, 3, 4), (12, 4, 1))
    offsets = np.array([17, 18, 24, 3, 1000])
    rows, columns, base = tensors.places(heads, offsets, tensors.elements(heads, offsets))
    assert rows.tolist() == [1, 1, 3, NOWHERE, NOWHERE] and columns.tolist()[:3] == [1, 2, 0] and base == 12
    vector = Tensor((4,), (1,))
    offsets = np.array([-1, 3, 5])
    rows, columns, base = tensors.places(vector, offsets, tensors.elements(vector, offsets))
    assert rows.tolist() == [0, 0, 0] and columns.tolist() == [-1, 3, 5] and base == 0


def test_what_is_stored_never_or_twice_is_counted():
    tensor, is_stored = Tensor((4,), (1,)), np.array([True, True, True, False])
    offsets = np.array([0, 1, 1, 3])
    at = drawn_accesses.AccessPlaces(offsets, np.full(4, ELEMENT), offsets, offsets, offsets)
    assert drawn_accesses.stored("y", tensor, at, is_stored) == (
        "2 of 4 elements of y are stored by no program. 1 element of y is stored more than once."
    )


@pytest.mark.parametrize(
    "offsets, said",
    [
        ([8], "offset 8"),
        ([8, 9], "offsets 8 and 9"),
        ([3, 9], "offsets 3 and 9"),
        ([0, 1, 2], "offsets 0 to 2"),
        ([0, 1, 6, 7], "offsets 0, 1, 6 and 7"),
        ([0, 1, 2, 3, 6, 7, 8, 9], "offsets 0 to 3 and 6 to 9"),
        ([0, 2, 4, 6, 8], "5 offsets in 5 runs"),
    ],
)
def test_offsets_are_said_as_short_as_can_be(offsets, said):
    assert words.offsets_named(offsets) == said


# ---- a learner's own kernel


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A function of a kernel's lines and its launch that returns a lab; it runs in this process, to save time."""
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    from flashlib.learner.kernels import run
    from flashlib.learner.kernels.recorder import record

    def made(text, *arguments, **launch):
        path = tmp_path / "own.py"
        path.write_text(f"import triton\nimport triton.language as tl\n\n{text}\n", encoding="utf-8")
        spec = importlib.util.spec_from_file_location("own", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return ProgramsLab(module.kernel, *arguments, **launch)

    monkeypatch.setattr(run, "recorded", lambda *arguments: (record(*arguments), ""))
    return made


COPY = """@triton.jit
def kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < N)
    tl.store(y_ptr + offs + 1, x, mask=offs < N)
"""
ROWS = """@triton.jit
def part(X_ptr, offs, N):
    return tl.load(X_ptr + offs, mask=offs < N)


@triton.jit
def kernel(X_ptr, Y_ptr, stride, N, BLOCK: tl.constexpr):
    head, row = tl.program_id(2), tl.program_id(1)
    start = 0
    while start < N:
        offs = start + tl.arange(0, BLOCK)
        x = part(X_ptr + head * 3 * stride + row * stride, offs, N)
        tl.store(Y_ptr + row, tl.sum(x))
        start += BLOCK
"""


def vectors(*sizes):
    import torch

    return [torch.zeros(size) for size in sizes]


def test_an_own_kernel_and_its_fault(own):
    x, y = vectors(10, 10)
    lab = own(COPY, x, y, 10, grid=lambda names: (-(-names["N"] // names["BLOCK"]),), BLOCK=4)
    result = lab.result
    assert result["grid"]["whole"] == [3, 1, 1] and result["said"] == [] and result["opens"] == 2
    assert result["programs"][2]["words"].startswith(
        "Program 2 loads offsets 8 and 9 of x_ptr, and stores offsets 9 and 10 of y_ptr."
    )
    assert [one["fault"] for one in result["accesses"] if one["fault"]] == [
        "Out of bounds: offset 10 of y_ptr is 1 past the end. y_ptr has the offsets 0 to 9."
    ]
    assert result["tensors"][1]["stored"] == "1 of 10 elements of y_ptr is stored by no program."
    assert [(line["number"], line["kind"]) for line in result["lines"] if line["kind"]] == [
        (7, "load"),
        (8, "store"),
    ]
    assert repr(lab).startswith(
        "ProgramsLab(kernel[(3,)](...): 3 programs, 10 places loaded, 9 stored, 4 masked, 1"
    )


def test_an_own_kernel_with_three_axes_a_loop_and_a_function(own):
    X, Y = vectors((2, 3, 7), 3)
    result = own(ROWS, X, Y, 7, 7, grid=(1, 3, 2), BLOCK=4).result
    assert "; the grid has 3 × 2 programs, which differ in their numbers." in result["grid"]["words"]
    assert [one["number"] for one in result["programs"]][:4] == [[0, 0, 0], [0, 1, 0], [0, 2, 0], [0, 0, 1]]
    last = [one for one in result["accesses"] if one["program"] == 5 and one["kind"] == "load"]
    assert [(one["turn"], one["base"]) for one in last] == [(0, 21), (1, 21)]
    assert [place[2:] for place in places(result, last[1])] == [[2, 4], [2, 5], [2, 6], [3, 0]]
    texts = [line["text"] for line in result["lines"]]
    assert texts[-1] == "    return tl.load(X_ptr + offs, mask=offs < N)" and "@triton.jit" in texts
    assert result["tensors"][1]["stored"] == "3 elements of Y_ptr are stored more than once."


def test_of_more_programs_than_can_be_shown_the_first_run_unless_they_ask_how_many_there_are(own):
    x, y = vectors(600, 601)
    result = own(COPY, x, y, 600, grid=(600,), BLOCK=1).result
    assert result["said"] == ["Of 600 programs, the first 256 ran and are shown."]
    assert result["grid"]["choosing"] == "256 of 600 programs are shown. Click one:"
    assert len(result["programs"]) == 256 and result["tensors"][1]["stored"] == ""
    text = COPY.replace("tl.program_id(0)", "tl.num_programs(0)")
    assert own(text, x, y, 600, grid=(600,), BLOCK=1).problem.endswith(
        "at most 256 run here: pass a smaller grid."
    )


def test_what_ran_before_an_own_kernel_raised_is_shown(own):
    x, y = vectors(10, 11)
    result = own(COPY.replace("x, mask", "tl.arange(0, 3), mask"), x, y, 10, grid=(3,), BLOCK=4).result
    (said,) = result["said"]
    assert said.startswith("kernel raised ValueError: arange's range") and said.endswith(
        "What ran before that is shown."
    )
    assert [one["kind"] for one in result["accesses"]] == ["load"]
    assert result["grid"]["choosing"] == "1 of 3 programs is shown."
    assert own(COPY, [1.0], x, 1, grid=(1,), BLOCK=4).problem.startswith("x_ptr is a list; pass a tensor: ")
    problem = own(COPY, x, grid=(3,)).problem
    assert problem.startswith("kernel raised TypeError: kernel() missing 3 required positional arguments")


def test_a_loop_without_an_end_is_stopped_and_named(own):
    endless = COPY.replace("    tl.store", "    while N > 0:\n        x += 1\n    tl.store")
    result = own(endless, *vectors(10, 10), 10, grid=(3,), BLOCK=4).result
    assert result["said"] == [
        "kernel was stopped: the loop in line 8 of kernel goes on after 1000 turns. What ran before that is shown."
    ]
    assert [(one["program"], one["kind"]) for one in result["accesses"]] == [(0, "load")]


@pytest.mark.parametrize(
    "grid, said",
    [
        (None, "grid is missing; pass one to three whole numbers, e.g. grid=(3,), or grid=(3, 2)."),
        (3, "grid is 3; pass one to three whole numbers"),
        ((1, 2, 3, 4), "grid is (1, 2, 3, 4); pass one to three"),
        ((-1,), "grid is (-1,); pass one to three whole numbers"),
        (lambda names: names["M"], "grid raised KeyError: 'M'; pass one to three"),
    ],
)
def test_what_is_no_grid(own, grid, said):
    assert own(COPY, *vectors(10, 10), 10, grid=grid, BLOCK=4).problem.startswith(said)


def test_an_own_kernel_of_no_programs(own):
    result = own(COPY, *vectors(10, 10), 0, grid=(0,), BLOCK=4).result
    assert result["programs"] == [] and result["grid"]["words"].endswith("no programs, so nothing runs.")


def test_an_own_kernel_runs_in_another_process(own, monkeypatch):
    from flashlib.learner.kernels import run

    x, y = vectors(4, 4)
    in_this_process = own(COPY, x, y, 3, grid=(1,), BLOCK=4).result
    monkeypatch.undo()
    assert "process" in run.recorded.__code__.co_names
    assert (
        own(COPY.replace("x, mask", "x + 1, mask"), x, y, 3, grid=(1,), BLOCK=4).result["accesses"]
        == (in_this_process["accesses"])
    )
    assert not y.any()
