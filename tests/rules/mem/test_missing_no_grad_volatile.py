"""MEM05: what `volatile=True` no longer does."""

from __future__ import annotations

import pytest

from tests.support import findings, fixed

TRAINING = """
    import torch
    from torch.autograd import Variable

    def measure(model, x, y):
        return torch.nn.functional.mse_loss(model(x), y)

    def train(model, opt, batches, held, cuda):
        for x, y in batches:
            opt.zero_grad()
            measure(model, x, y).backward()
            opt.step()
            {made}
            if cuda:
                held = held.cuda()
            print(measure(model, held, y).item())
    """


@pytest.mark.parametrize(
    ("made", "lines"),
    [
        ("held = Variable(held, volatile=True)", [15]),
        ("held = Variable(held, volatile=False)", []),
        ("held = Variable(held)", []),
    ],
)
def test_a_tensor_stays_volatile_on_its_way_to_the_device(made: str, lines: list[int]) -> None:
    assert [finding.line for finding in findings(TRAINING.format(made=made), "MEM05", "MEM09")] == lines


COLLECTING = """
    import torch
    from torch.autograd import Variable

    def collect(vae, batches):
        codes = []
        for xs in batches:
            xs = Variable(xs.cuda(){volatile})
            codes.append(vae.encoder.forward(xs))
        return codes
    """


@pytest.mark.parametrize(("volatile", "lines"), [(", volatile=True", [8]), ("", [])])
def test_a_result_that_leaves_the_function_was_to_have_no_graph(volatile: str, lines: list[int]) -> None:
    assert [finding.line for finding in findings(COLLECTING.format(volatile=volatile), "MEM05", "MEM09")] == lines


HOLDER = """
    from torch.autograd import Variable

    class Pair:
        def __init__(self, net):
            self.net = net.cuda()

        def forward(self, x):
            self.real = Variable(x)
            self.fake = self.net(self.real)

        def optimize(self, x, opt):
            self.forward(x)
            opt.zero_grad()
            self.fake.mean().backward()
            opt.step()

        def test(self, x, y):
            self.real = Variable(x, volatile=True)
            {between}
            self.fake = self.net(self.real)
    """


@pytest.mark.parametrize(
    ("between", "lines"),
    [("self.other = Variable(y)", [20]), ("self.forward(y)", []), ("self.real = Variable(y)", [])],
)
def test_an_attribute_is_what_was_last_stored_in_it(between: str, lines: list[int]) -> None:
    assert [finding.line for finding in findings(HOLDER.format(between=between), "MEM05", "MEM09")] == lines


SCRIPT = """
    import torch
    from torch.autograd import Variable

    net = torch.nn.Linear(4, 4)
    net.load_state_dict(torch.load("net.pt"))

    def convert(image, name):
        out = {run}
        torch.save(out.data, name)

    for image, name in torch.load("images.pt"):
        image = Variable(image, volatile=True)
        convert(image, name)
    """


@pytest.mark.parametrize(
    ("run", "lines"),
    [("net(image)", [7, 13]), ("image * 2", []), ("net(image)\n        return out.data", [7])],
)
def test_a_helper_that_runs_the_network_for_a_volatile_tensor(run: str, lines: list[int]) -> None:
    assert [finding.line for finding in findings(SCRIPT.format(run=run), "MEM05", "MEM09")] == lines


EPISODE = """
    import torch
    from torch.autograd import Variable

    class Episodes:
        def process(self, x, trains):
            net = {network}
            loss = net(Variable(x, volatile={volatile})).pow(2).mean()
            if trains:
                {trained}.backward()
                self.optimizers["net"].step()
            return loss.item()
    """


@pytest.mark.parametrize(
    ("volatile", "trained", "lines"),
    [
        ("True", "self.loss_of(x)", [7]),
        ("True", "loss", []),  # which fails in old versions, and trains in new ones
        ("not trains", "loss", []),  # where it trains, the graph is needed
    ],
)
@pytest.mark.parametrize("network", ['self.networks["net"]', "torch.nn.Linear(4, 4)"])
def test_a_volatile_pass_in_a_step_of_something_else(
    network: str, volatile: str, trained: str, lines: list[int]
) -> None:
    code = EPISODE.format(network=network, volatile=volatile, trained=trained)
    assert [finding.line for finding in findings(code, "MEM05", "MEM09")] == lines


def test_an_attribute_that_is_made_of_itself_alone_ends_the_search() -> None:
    code = """
        import torch
        from learners import Base

        class Learner(Base):
            def __init__(self):
                self.net = self.net.cuda()

            def run(self, batches):
                self.show(self.net, batches)

            def show(self, net, batches):
                net.eval()
                for x in batches:
                    print(net(x.cuda()).argmax(1))
        """
    assert len(findings(code, "MEM05")) == 1


METHOD = """
    from torch.autograd import Variable

    def features(net, batches):
        net.eval()
        rows = []
        for x in batches:
            x = Variable({given})
            score, layers = net.{method}(x)
            rows.extend(layer.data.mean(2) for layer in layers)
        return rows
    """


@pytest.mark.parametrize(
    ("method", "given", "lines"),
    [
        ("feature_list", "x, volatile=True", [3]),
        ("feature_list", "x", []),
        ("feature_list", "x.cuda()", [3]),  # no less: the network has been told to evaluate
        ("apply", "x, volatile=True", []),  # a method that every module has, and that runs nothing
        ("apply", "x.cuda()", []),
    ],
)
def test_a_method_of_a_network_out_of_sight_that_gets_a_volatile_tensor_runs_it(
    method: str, given: str, lines: list[int]
) -> None:
    code = METHOD.format(method=method, given=given)
    assert [finding.line for finding in findings(code, "MEM05", "MEM09")] == lines


@pytest.mark.parametrize(("wrapper", "is_fixed"), [("Variable", True), ("Wrapped", False)])
def test_a_wrapper_of_the_programs_own_that_is_told_to_record_nothing_is_left(wrapper: str, is_fixed: bool) -> None:
    code = f"""
        import torch
        from torch import autograd
        from torch.autograd import Variable

        class Wrapped(autograd.Variable):
            def __init__(self, data, *args, **kwargs):
                super().__init__(data.cuda(), *args, **kwargs)

        def act(model, observed):
            model.eval()
            return model({wrapper}(torch.from_numpy(observed), volatile=True)).data.max(1)[1].cpu()
        """
    after = fixed(code, "MEM05", "TRAIN10", unsafe=True)
    assert ("no_grad" in after) is is_fixed
    assert ("volatile" in after) is not is_fixed
