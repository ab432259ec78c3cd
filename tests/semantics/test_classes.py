"""Classes: properties, inheritance, class attributes, dataclasses, class and static methods."""

from __future__ import annotations

import pytest

from tests.semantics.programs import call_on, function_of, model_of, value_of
from tests.support import findings
from torchlint.semantics.entities import Role
from torchlint.semantics.values import UNKNOWN, Grad, Kind, Place

TRAINER = """
    import functools
    import torch
    from torch import nn
    from torch.utils.data import DataLoader

    class Base:
        network = nn.Linear
        tries = 3

        def __init__(self, net, device):
            self.net = net.to(device)
            self.device = device
            self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def compute_loss(self, x):
            raise NotImplementedError

        def step(self, x):
            self.opt.zero_grad()
            loss = self.compute_loss(x.to(self.device))
            loss.backward()
            self.opt.step()
            return loss

        def fit(self, loader):
            for x in loader:
                loss = self.step(x)
                print(loss.item())

        @property
        def model(self):
            return self.net

        @functools.cached_property
        def criterion(self):
            return nn.MSELoss()

        @staticmethod
        def moved(x):
            return x.cuda()

        @classmethod
        def make(cls, width):
            return cls(nn.Linear(2, width), "cuda")

    class Child(Base):
        def __init__(self):
            super().__init__(nn.Linear(3, 3), "cuda")
            self.layer = self.network(3, 3)

        def compute_loss(self, x):
            out = self.model(x)
            return self.criterion(out, x)

    child = Child()
    child.fit(DataLoader(dataset, num_workers=2))
"""


def test_a_method_that_only_raises_stands_for_those_of_derived_classes() -> None:
    model = model_of(TRAINER)
    call = call_on(model, "self.compute_loss(x.to(self.device))")
    assert call.target is function_of(model, "Child.compute_loss")
    loss = value_of(model, "loss", "Base.step")
    assert (loss.grad, loss.place, loss.rank) == (Grad.CARRIES, Place.ACCELERATOR, 0)


def test_the_step_of_a_base_class_is_read_back_in_its_loop() -> None:
    assert [found.code for found in findings(TRAINER, "SYNC01")] == ["SYNC01"]


def test_a_method_that_derived_classes_override_may_be_any_of_them() -> None:
    model = model_of(
        """
        import torch
        class Base:
            def loss(self, x):
                return x.sum()
            def step(self, x):
                value = self.loss(x)
        class A(Base):
            def loss(self, x):
                return x
        class B(A):
            def loss(self, x):
                return 3
        B().step(torch.ones(2, 3))
        """
    )
    assert [function.qualname for function in call_on(model, "self.loss(x)").alternatives] == [
        "Base.loss",
        "A.loss",
        "B.loss",
    ]
    assert value_of(model, "value", "Base.step").rank is None


def test_the_methods_of_an_object_made_in_sight_are_those_of_its_class() -> None:
    model = model_of(
        """
        class Base:
            def loss(self):
                return 1
        class A(Base):
            def loss(self):
                return "one"
        value = Base().loss()
        """
    )
    assert value_of(model, "value").kind is Kind.NUMBER


def test_a_property_is_what_it_returns_and_is_not_called() -> None:
    model = model_of(TRAINER + "    net = child.model\n    y = child.model(torch.ones(2, 3))\n")
    assert value_of(model, "net").place is Place.ACCELERATOR
    assert value_of(model, "y").carries
    assert call_on(model, "child.model(torch.ones(2, 3))").is_forward


@pytest.mark.parametrize("enabled", [True, False])
def test_a_property_runs_as_its_readers_do(enabled: bool) -> None:
    switch = "enable_grad" if enabled else "no_grad"
    model = model_of(
        f"""
        import torch
        class Model:
            def __init__(self):
                self.net = torch.nn.Linear(2, 2)
            @property
            def output(self):
                y = self.net(self.x)
                return y
        with torch.{switch}():
            out = Model().output
        """
    )
    assert value_of(model, "out").carries is enabled
    assert value_of(model, "y", "Model.output").carries is enabled


def test_class_and_static_methods() -> None:
    model = model_of(TRAINER + "    made = Child.make(3)\n    x = Child.moved(torch.ones(2))\n")
    assert value_of(model, "made").ref == "Base"
    assert function_of(model, "Base.make").parameter("width").kind is Kind.NUMBER
    assert value_of(model, "x").place is Place.ACCELERATOR


def test_a_class_attribute_is_an_attribute_of_the_objects_but_its_number_may_change() -> None:
    model = model_of(TRAINER + "    net = child.layer\n    tries = child.tries\n")
    assert value_of(model, "net").kind is Kind.MODULE
    assert (value_of(model, "tries").kind, value_of(model, "tries").constant) == (Kind.NUMBER, None)


def test_loops_in_methods_of_a_base_class_have_roles() -> None:
    assert [loop.role for loop in model_of(TRAINER).loops] == [Role.STEPS]


DATACLASS = """
    import torch
    from dataclasses import dataclass, field
    from torch import nn

    @dataclass
    class State:
        net: nn.Module
        device: torch.device = torch.device("cuda")
        criterion: nn.Module = field(default_factory=nn.CrossEntropyLoss)
        losses: list = field(default_factory=list)

        def run(self, x):
            out = self.net(x.to(self.device))
            loss = self.criterion(out, x)
            self.losses.append(loss)
            return loss
"""


def test_fields_of_a_dataclass_are_what_it_is_made_of() -> None:
    model = model_of(DATACLASS + "    state = State(nn.Linear(2, 2))\n    loss = state.run(x)\n    net = state.net\n")
    assert value_of(model, "net").ref == "torch.nn.Linear"
    loss = value_of(model, "loss")
    assert (loss.grad, loss.place, loss.rank) == (Grad.CARRIES, Place.ACCELERATOR, 0)


def test_fields_of_a_dataclass_that_nobody_makes_are_what_they_are_declared_to_be() -> None:
    model = model_of(DATACLASS)
    assert value_of(model, "out", "State.run").carries


def test_fields_filled_from_out_of_sight_are_unknown() -> None:
    model = model_of(
        """
        from typing import NamedTuple
        class Pair(NamedTuple):
            x: object
            y: object
        pair = Pair(1, *rest)
        y = pair.y
        """
    )
    assert value_of(model, "y") == UNKNOWN


def test_a_parameter_declared_to_be_of_a_class_of_the_file_has_its_attributes() -> None:
    model = model_of(DATACLASS + "    def report(state: 'State', other: State | None):\n        loss = other.run(x)\n")
    assert function_of(model, "report").parameter("state").ref == "State"
    assert value_of(model, "loss", "report").carries


NETWORKS = """
    import torch
    from torch import nn

    class Base(nn.Module):
        def accuracy(self, x, y):
            return self(x).argmax(1).eq(y).cpu().sum()

    class Plain(Base):
        def forward(self, x):
            return x, x.sum()

    class Deep(Base):
        def forward(self, x):
            return x.exp(), x.sum()

    net = Plain() if small else Deep()
    net.cuda()
"""


def test_an_object_of_one_of_two_classes_runs_what_both_have() -> None:
    model = model_of(NETWORKS + "    right = net.accuracy(torch.ones(2, 3).cuda(), torch.ones(2).cuda())\n")
    assert value_of(model, "right").place is Place.HOST
    call = call_on(model, "net.accuracy(torch.ones(2, 3).cuda(), torch.ones(2).cuda())")
    assert call.target is not None
    assert call.target.name == "accuracy"


def test_what_one_of_two_networks_returns_is_what_both_may_return() -> None:
    model = model_of(NETWORKS + "    both = net(torch.ones(2, 3))\n")
    returned = value_of(model, "both")
    assert returned.items is not None
    assert [item.kind for item in returned.items] == [Kind.TENSOR, Kind.TENSOR]
    assert call_on(model, "net(torch.ones(2, 3))").is_forward


@pytest.mark.parametrize("other", ["library.deep()", "nn.Sequential()"])
def test_of_one_of_two_classes_nothing_is_known_where_only_one_is_in_sight(other: str) -> None:
    unseen = NETWORKS.replace("else Deep()", f"else {other}")
    model = model_of(unseen + "    right = net.accuracy(torch.ones(2, 3).cuda(), torch.ones(2).cuda())\n")
    assert value_of(model, "right").place is not Place.HOST


def test_a_network_that_may_be_handed_in_is_not_only_the_one_that_is_made() -> None:
    scored = """
    def score(net: nn.Module):
        if small:
            net = Plain()
        right = net.accuracy(torch.ones(2, 3).cuda(), torch.ones(2).cuda())
    """
    assert value_of(model_of(NETWORKS + scored), "right", "score").place is not Place.HOST


def test_what_has_parameters_is_a_network_whatever_has_made_it() -> None:
    model = model_of(
        """
        import torch
        class Trainer:
            def __init__(self, model, device):
                self.net = model(width=8).to(device)
                self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
            def score(self, x):
                y = self.net(x)
        """
    )
    assert value_of(model, "y", "Trainer.score").grad is Grad.CARRIES


def test_what_an_option_names_of_a_package_of_torch() -> None:
    model = model_of("""
        import torchvision.models as models
        from torch import nn, optim

        net = models.__dict__[args.arch](weights=None)
        head = getattr(nn, args.head)(2, 2)
        opt = getattr(optim, args.optimizer)(net.parameters(), lr=0.1)
        steps = getattr(optim.lr_scheduler, args.steps)(opt)
        other = getattr(args, args.name)(net)
        """)
    names = ("net", "head", "opt", "steps", "other")
    kinds = [Kind.MODULE, Kind.MODULE, Kind.OPTIMIZER, Kind.SCHEDULER, Kind.UNKNOWN]
    assert [value_of(model, name).kind for name in names] == kinds


def test_an_abstract_method_returns_what_the_classes_that_derive_from_it_return() -> None:
    code = """
        from abc import ABC, abstractmethod

        class Trainer(ABC):
            @abstractmethod
            def loss_of(self, batch):
                return 0

            def step(self, batch):
                loss = self.loss_of(batch)
                loss.backward()
    """
    assert value_of(model_of(code), "loss", "Trainer.step").carries
    assert value_of(model_of(code.replace("@abstractmethod", "")), "loss", "Trainer.step").kind is Kind.NUMBER


POLICIES = """
    import library
    from torch import nn

    class Random:
        def __call__(self, obs):
            return 0

    class Learned:
        def __call__(self, obs):
            return 1

    def make_policy(kind):
        if kind == "random":
            return Random()
        return Learned()

    def play(obs, kind):
        policy = {made}
        return policy(obs)
"""


@pytest.mark.parametrize(
    ("made", "kind"), [("make_policy(kind)", Kind.INSTANCE), ("library.make_policy(kind)", Kind.MODULE)]
)
def test_an_object_of_one_of_several_classes_is_no_network_by_its_name(made: str, kind: Kind) -> None:
    model = model_of(POLICIES.format(made=made))
    assert model.value(call_on(model, "policy(obs)").node.func).kind is kind
