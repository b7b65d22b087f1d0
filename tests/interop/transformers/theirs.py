"""transformers' own test of its attentions, with one of our engines under the name of "sdpa": a script.

    python theirs.py FOLDER ENGINE FAMILY ...   FOLDER: its sources; prints as JSON what became of each case

Its sources are those of its release: how it tests all models is there, and what it tests of each is not, so that
configs come from `families`. Two modules that it imports are not there either, and are not asked here.
"""

import json
import sys
import types
import unittest
from pathlib import Path

import torch

HERE = Path(__file__).resolve()


def use_their_tests(folder):
    """Put their package `tests` first, with two modules that it lacks."""
    sys.path[:0] = [str(folder), str(HERE.parent)]
    for name, mixin in (
        ("exporters.test_export", "ExportTesterMixin"),
        ("generation.test_utils", "GenerationTesterMixin"),
    ):
        for part in (f"tests.{name.partition('.')[0]}", f"tests.{name}"):
            sys.modules[part] = types.ModuleType(part)
        setattr(sys.modules[f"tests.{name}"], mixin, object)


def case_of(common, name, family, called):
    """Return a TestCase of a family, of all cases of their test."""

    class Tester:
        seq_length = 7

        def prepare_config_and_inputs_for_common(self):
            ids = torch.randint(3, 90, (7, 7))
            return family.config(), {"input_ids": ids}

    class Case(unittest.TestCase):
        all_model_classes = (family.model,)
        has_attentions, is_encoder_decoder, model_tester = True, False, Tester()

        def _prepare_for_class(self, inputs, model_class, return_labels=False):
            return dict(inputs)

    def test_of(arguments):
        def test(self):
            before = len(called)
            common._test_eager_matches_sdpa_inference(self, *arguments)
            self.assertGreater(len(called), before, "ours was not called")

        return test

    for arguments in common.TEST_EAGER_MATCHES_SDPA_INFERENCE_PARAMETERIZATION:
        setattr(Case, f"test_{arguments[0]}", test_of(arguments))
    Case.__qualname__ = name
    return Case


def main(folder, engine, *names):
    use_their_tests(folder)
    import families
    from transformers import AttentionInterface, AttentionMaskInterface

    from flashlib.interop.transformers import attend, call_mask, engines
    from tests import test_modeling_common as common

    called, function = [], engines.engine_of(engine)

    def counted(*given, **options):
        called.append(engine)
        return function(*given, **options)

    AttentionInterface.register("sdpa", attend.attention(counted))
    AttentionMaskInterface.register("sdpa", call_mask.mask_of_call)
    said = {}
    for name in names:
        result = unittest.TestResult()
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(
            case_of(common, name, families.FAMILIES[name], called)
        )
        suite.run(result)
        wrong = [f"{test.id()}: {text}" for test, text in result.failures + result.errors]
        refused = [text for text in wrong if "output_attentions is given: no P is stored" in text]
        said[name] = {
            "cases": result.testsRun,
            "refused": len(refused),
            "skipped": len(result.skipped),
            "wrong": [text for text in wrong if text not in refused],
        }
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
