"""MEM05: functions that somebody else runs, and functions within what runs with gradients off."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.mem.projects import found_in

SOLVED = """
    import torch
    from solver import Equation, solve

    def samples(model, x):
        def flow(t, x):
            return model(x, t)

        model.eval()
        {made}
        with {mode}:
            {run}
        return path[-1]
"""
SHOWN = """
    import torch
    from lib import samples

    def main(net: torch.nn.Module, x):
        net.eval()
        for start in torch.utils.data.DataLoader(x):
            print(samples(net, start))
"""


@pytest.mark.parametrize(
    ("made", "run"), [("equation = Equation(flow)", "path = equation.trajectory(x)"), ("", "path = solve(flow, x)")]
)
@pytest.mark.parametrize(("mode", "count"), [("torch.no_grad()", 0), ("torch.profiler.profile()", 1)])
def test_a_function_that_a_solver_is_to_run(tmp_path: Path, made: str, run: str, mode: str, count: int) -> None:
    assert len(found_in(tmp_path, main=SHOWN, lib=SOLVED.format(mode=mode, made=made, run=run))) == count


MEASURED = """
    import torch
    from meters import Meter

    def measured(network, x, copies):
        def test_copied():
            network(x.clone()).cpu()

        def test_run():
            network(x)

        tried = test_copied if copies else test_run
        return Meter().power(tried)

    def main(network, x):
        network.eval()
        with {switch}:
            print(measured(network, x, True))
"""


@pytest.mark.parametrize(("switch", "count"), [("torch.no_grad()", 0), ("torch.profiler.profile()", 2)])
def test_a_function_within_one_that_runs_with_gradients_off(tmp_path: Path, switch: str, count: int) -> None:
    meters = "class Meter:\n    def power(self, run):\n        return run()\n"
    assert len(found_in(tmp_path, meters=meters, main=MEASURED.format(switch=switch))) == count
