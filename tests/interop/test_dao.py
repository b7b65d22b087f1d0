"""Which of the package's own tests run, by a fixed rule, and what became of those that ran."""

import itertools
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from tools import dao_cases

RECORD = Path(__file__).with_name("flash_attn_tests.json")


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("d", [32, 59, 64, 128])
@pytest.mark.parametrize("seqlen_q,seqlen_k", [(64, 64), (113, 203), (512, 256), (2048, 2048)])
@pytest.mark.parametrize("mha_type", ["mha", "mqa"])
@pytest.mark.parametrize("alibi", [False, True])
@pytest.mark.parametrize("dropout_p", [0.0, 0.17])
@pytest.mark.parametrize("softcap", [0.0, 50.0])
def given_as_a_test(**case):
    raise AssertionError("it is not run")


GIVEN = dao_cases.parameters(given_as_a_test)


@pytest.fixture(scope="module")
def chosen():
    found = {}
    for name in ("test_flash_attn_output", "test_flash_attn_race_condition", "test_flash_attn_bwd_overflow"):
        found[name] = dao_cases.chosen(name, GIVEN, dao_cases.rows([GIVEN]))
    return found


def pairs(cases):
    return set().union(*(itertools.combinations(sorted(case.items()), 2) for case in cases))


def test_parameters_are_read_from_the_marks():
    assert GIVEN.names[0] == ("dtype",) and ("seqlen_q", "seqlen_k") in GIVEN.names
    assert math.prod(map(len, GIVEN.values)) == 2048
    first = GIVEN.called(next(GIVEN.cases()))
    assert first["seqlen_q"] == first["seqlen_k"] == 64 and len(first) == 10


def test_each_pair_of_values_is_there(chosen):
    cases = [case for case in map(GIVEN.called, GIVEN.cases()) if dao_cases.fits(case)]
    assert pairs(chosen["test_flash_attn_output"]) == pairs(cases)
    assert not any(case["softcap"] and case["dropout_p"] for case in chosen["test_flash_attn_output"])


def test_a_test_has_its_share_and_no_case_twice(chosen):
    for name, cases in chosen.items():
        assert len({tuple(case.items()) for case in cases}) == len(cases)
        assert len(cases) <= max(dao_cases.SHARES[name], len(dao_cases.covering(list(GIVEN.cases())[::7])))


def test_the_race_condition_is_tested_with_each_value(chosen):
    cases = chosen["test_flash_attn_race_condition"]
    values = {item for case in cases for item in case.items()}
    assert values == {item for case in map(GIVEN.called, GIVEN.cases()) for item in case.items()}


def test_few_kernels_serve_all_cases(chosen):
    kernels = {tuple(case[name] for name in dao_cases.KERNEL) for case in chosen["test_flash_attn_output"]}
    assert len(kernels) <= len(dao_cases.rows([GIVEN])) < 20


def test_the_rule_is_the_same_each_time(chosen):
    table = dao_cases.rows([GIVEN])
    assert dao_cases.chosen("test_flash_attn_output", GIVEN, table) == chosen["test_flash_attn_output"]


@pytest.mark.process
def test_files_with_different_contents_are_refused(tmp_path):
    code = (
        "from pathlib import Path\nfrom tools import dao_tests\n"
        f"folder = Path({str(tmp_path)!r})\n(folder / 'tests').mkdir()\n"
        "(folder / dao_tests.TESTS).write_text('assert True')\n"
        "try:\n    dao_tests.fetched(folder)\nexcept ValueError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "test_flash_attn.py has the hash" in done.stdout, done.stderr


def test_all_cases_have_passed():
    """The command of the record is `make test-dao`, on a GPU."""
    rows = json.loads(RECORD.read_text(encoding="utf-8"))["rows"]
    assert {row["test"] for row in rows} == set(dao_cases.SHARES)
    assert all(row["passed"] == row["cases"] for row in rows) and sum(row["cases"] for row in rows) >= 6000
