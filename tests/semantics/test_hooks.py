"""What modules pass to the functions that are registered with them."""

from __future__ import annotations

import pytest

from tests.semantics.programs import binding_of, model_of
from torchlint.semantics.values import Kind

NOTING = """
    import functools
    import torch

    class Probe:
        def __init__(self, net):
            net.layer.register_forward_hook(self.note)

        def note(self, module, given, made):
            return module, given, made

    def stat(module, given, made, name):
        return module, given, made, name

    def back(module, given, made):
        return module, given, made

    def before(module, given):
        return module, given

    def maker(kept):
        def hook(module, given, made):
            kept.append(made)
        return hook

    def other(module, given, made):
        return module, given, made

    def late(module, given, named, made):
        return module, given, named, made

    def early(module, given, named):
        return module, given, named

    def placed(name, module, given, made):
        return name, module, given, made

    def watch(net, kept):
        for name, layer in net.named_modules():
            layer.register_forward_hook(functools.partial(stat, name="layer"))
            layer.register_forward_hook(maker(kept))
            layer.register_forward_pre_hook(before)
            layer.register_full_backward_hook(back)
            layer.register_forward_hook(late, with_kwargs=True)
            layer.register_forward_pre_hook(early, with_kwargs=True)
            layer.register_forward_hook(functools.partial(placed, "layer"), with_kwargs=False)
            layer.register_state_dict_pre_hook(other)
"""


@pytest.mark.parametrize(
    ("function", "parameter", "kind"),
    [
        ("Probe.note", "module", Kind.MODULE),
        ("Probe.note", "given", Kind.TUPLE),
        ("Probe.note", "made", Kind.TENSOR),
        ("stat", "made", Kind.TENSOR),
        ("stat", "name", Kind.STRING),
        ("maker.hook", "given", Kind.TUPLE),
        ("maker.hook", "made", Kind.TENSOR),
        ("before", "given", Kind.TUPLE),
        ("back", "made", Kind.TUPLE),
        ("late", "given", Kind.TUPLE),
        ("late", "named", Kind.DICT),
        ("late", "made", Kind.TENSOR),
        ("early", "named", Kind.DICT),
        ("placed", "name", Kind.STRING),
        ("placed", "given", Kind.TUPLE),
        ("placed", "made", Kind.TENSOR),
        ("other", "made", Kind.UNKNOWN),
    ],
)
def test_what_a_module_passes_to_its_hooks(function: str, parameter: str, kind: Kind) -> None:
    model = model_of(NOTING)
    value = model.value(binding_of(model, parameter, function).writes[-1].target)
    assert value.kind is kind
    if kind is Kind.TUPLE:
        assert value.element is not None
        assert value.element.kind is Kind.TENSOR
