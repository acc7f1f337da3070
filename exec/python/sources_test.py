"""The forms that task files come in: constructor arguments, names of the model, KernelBook's helpers."""

import copy
import os
import unittest

import torch

import testing  # first: it finds the others
import layout
import sources
from mock_config import MockConfig

_TASK = """
import torch
{head}
class {name}(torch.nn.Module):
    def __init__(self, {parameters}):
        super().__init__()
        self.got = ({arguments})
    def forward(self, x):
        return x
def get_inputs():
    return [torch.rand(2)]
def get_init_inputs():
    return {init}
"""


def load(init, parameters="*args, **kwargs", arguments="args, kwargs", name="Model", head="", tail=""):
    source = _TASK.format(init=init, parameters=parameters, arguments=arguments, name=name, head=head)
    return sources.load_reference(source + tail)


def constructed(init, **fields):
    """What the constructor got."""
    module = load(init, **fields)
    return sources.build_model(module.Model, sources.init_inputs(module), 1).got


class InitInputsTest(unittest.TestCase):
    def test_a_list_is_positional(self):
        self.assertEqual(constructed("[]"), ((), {}))
        self.assertEqual(constructed("[3, 'a']"), ((3, "a"), {}))
        self.assertEqual(constructed("(3, [4], None)"), ((3, [4], None), {}))

    def test_a_dict_is_named(self):
        self.assertEqual(constructed("{'scale': 2}"), ((), {"scale": 2}))

    def test_a_list_of_a_list_and_a_dict_is_both(self):
        self.assertEqual(constructed("[[], {}]"), ((), {}))
        self.assertEqual(constructed("[[3], {'scale': 2}]"), ((3,), {"scale": 2}))
        self.assertEqual(constructed("[[], {'scale': 2}]", parameters="scale, shift=1", arguments="scale, shift"), (2, 1))

    def test_a_constructor_that_takes_a_list_and_a_dict_gets_them(self):
        fields = {"parameters": "sizes, options", "arguments": "sizes, options"}
        self.assertEqual(constructed("[[3, 4], {'a': 1}]", **fields), ([3, 4], {"a": 1}))
        self.assertEqual(constructed("[[3], {'a': 1}]", **fields), ([3], {"a": 1}))
        self.assertEqual(constructed("[[3, 4], {1: 2}]", **fields), ([3, 4], {1: 2}))

    def test_arguments_that_fit_neither_way_fail_as_named_ones(self):
        with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'factor'"):
            constructed("[[], {'factor': 2}]", parameters="scale", arguments="scale")

    def test_the_list_of_the_task_stays_as_it_is(self):
        module = load("[[WIDTHS], {}]", head="WIDTHS = [1]\n")
        sources.build_model(module.Model, sources.init_inputs(module), 1).got[0][0].append(2)
        self.assertEqual(module.WIDTHS, [1])


class ModelNameTest(unittest.TestCase):
    def test_the_only_class_with_a_forward_is_the_model(self):
        function = "class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x\n"
        self.assertEqual(load("[]", name="RowMean", head=function).Model.__name__, "RowMean")

    def test_the_file_can_name_it(self):
        other = "class Other(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
        self.assertEqual(load("[]", name="RowMean", head=other, tail="Model = RowMean\n").Model.__name__, "RowMean")
        with self.assertRaisesRegex(AttributeError, "the reference defines no Model"):
            load("[]", name="RowMean", head=other)


class MockConfigTest(unittest.TestCase):
    HEAD = "from _paritybench_helpers import _mock_config, _mock_layer, patch_functional\npatch_functional()\n"

    def test_a_configuration_has_its_fields(self):
        init = "[[], {'cfg': _mock_config(K=4, sizes=[1, 2])}]"
        cfg = constructed(init, parameters="cfg", arguments="cfg", head=self.HEAD)
        self.assertEqual((cfg.K, cfg["sizes"], cfg.get("none"), "K" in cfg, len(cfg)), (4, [1, 2], None, True, 2))
        self.assertEqual(dict(**cfg), {"K": 4, "sizes": [1, 2]})
        self.assertEqual(repr(cfg), "_mock_config(K=4, sizes=[1, 2])")
        with self.assertRaises(AttributeError):
            cfg.missing

    def test_it_can_be_copied_and_handed_over(self):
        cfg = MockConfig({"K": 4, "inner": MockConfig({"rate": 0.5}), "weight": torch.ones(2)})
        self.assertEqual(copy.deepcopy(cfg).inner.rate, 0.5)
        memory = os.memfd_create("test")
        self.addCleanup(os.close, memory)
        os.ftruncate(memory, 256)
        described = layout.Writer(memory).put([[], {"cfg": cfg}])
        self.assertEqual([kind for kind, _ in layout.leaves_of(described)], ["value", "value", "tensor"])
        self.assertEqual(len(layout.flatten(cfg)), 3)
        got = testing.Reader(memory).get(described)[1]["cfg"]
        self.assertIsInstance(got, MockConfig)
        self.assertEqual((got.K, got.inner.rate), (4, 0.5))
        self.assertTrue(got.weight.equal(torch.ones(2)))
        self.assertTrue(layout.map_tensors(cfg, lambda tensor: tensor * 2).weight.equal(torch.full([2], 2.0)))

    def test_a_layer_gives_its_input_back(self):
        got = constructed("[[], {'layer': _mock_layer(size=3)}]", parameters="layer", arguments="layer", head=self.HEAD)
        self.assertEqual((got(5, 6), got.size), (5, 3))


if __name__ == "__main__":
    unittest.main()
