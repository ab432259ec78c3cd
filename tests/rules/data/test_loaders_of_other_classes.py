"""DATA02, XFER02: loaders of graphs, subclasses of loaders, loaders that a framework prepares, options of two dicts."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.rules.data.unpinned_loaders import HEADER, LOOP
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

CODES = ("DATA02", "XFER02")


def found(folder: Path, main: str, codes: tuple[str, ...] = CODES, **files: str) -> list[tuple[str, str]]:
    """Codes and text of the lines of `main.py` that are found, behind HEADER."""
    (folder / "pyproject.toml").touch()
    for name, code in {"main": HEADER + dedent(main), **files}.items():
        (folder / f"{name}.py").write_text(dedent(code))
    source = Source.read(folder / "main.py")
    findings = lint(source, Settings.selecting(*codes), strict=True, project=Project())
    return [(finding.code, source.text.splitlines()[finding.line - 1].strip()) for finding in findings]


# -- graphs

SAMPLED = """
from torch_geometric.datasets import Reddit
from torch_geometric.{module} import {name}

graph = Reddit("data")[0]
{made}
for {target} in loader:
    {moved}
    criterion(model(graph.x), graph.y).backward()
"""
WHOLE = ("batch", "batch = batch.to(device)")
HOPS = ("size, nodes, hops", "hops = [hop.to(device) for hop in hops]")


@pytest.mark.parametrize(
    ("module", "name", "made", "drawn"),
    [
        ("loader", "ClusterLoader", "loader = ClusterLoader(graph, batch_size=20)", WHOLE),
        ("data", "ClusterLoader", "loader = ClusterLoader(graph, batch_size=20)", WHOLE),
        ("loader", "RandomNodeLoader", "loader = RandomNodeLoader(graph, num_parts=10)", WHOLE),
        ("data", "NeighborSampler", "loader = NeighborSampler(graph.edge_index, sizes=[25, 10])", HOPS),
        ("loader", "ShaDowKHopSampler", "loader = ShaDowKHopSampler(graph, depth=2)", WHOLE),
    ],
)
def test_a_loader_of_parts_of_a_graph(
    tmp_path: Path, module: str, name: str, made: str, drawn: tuple[str, str]
) -> None:
    main = SAMPLED.format(module=module, name=name, made=made, target=drawn[0], moved=drawn[1])
    assert found(tmp_path, main) == [("DATA02", made), ("XFER02", drawn[1])]


@pytest.mark.parametrize(
    ("made", "lines"),
    [
        pytest.param("graph = graph.to(device)\nparts, rest = graph.split_at(5)", [], id="of a graph that was moved"),
        pytest.param("parts, rest = graph.split_at(5)", ["loader = TemporalDataLoader(parts)"], id="on the host"),
    ],
)
def test_a_loader_of_a_part_of_a_graph(tmp_path: Path, made: str, lines: list[str]) -> None:
    made += "\nloader = TemporalDataLoader(parts)"
    main = SAMPLED.format(module="loader", name="TemporalDataLoader", made=made, target=WHOLE[0], moved=WHOLE[1])
    assert [line for code, line in found(tmp_path, main) if code == "DATA02"] == lines


# -- subclasses

ENDLESS = """
from torch.utils.data import DataLoader


class Endless(DataLoader):
    def __init__(self, {taken}):
        super().__init__({given})
        self.iterator = super().__iter__()

    def __iter__(self):
        for _ in range(len(self)):
            {drawn}


def rounds(loader):
    while True:
        for batch in iter(loader):
            yield batch
"""
DRAWN = "yield next(self.iterator)"
MADE = "loader = Endless(images, 64, num_workers=4)"
SUBCLASSES = [
    pytest.param("*args, **kwargs", "*args, **kwargs", DRAWN, [MADE], id="hands all arguments on"),
    pytest.param("images, size, **more", "images, size, **more", DRAWN, [MADE], id="hands the first two on by name"),
    pytest.param("*args, **kwargs", "*args, pin_memory=True, **kwargs", DRAWN, [], id="pins by itself"),
    pytest.param("*args, **kwargs", "*args, **options(kwargs)", DRAWN, [], id="changes the options"),
    pytest.param("size, images, **more", "images, size, **more", DRAWN, [MADE], id="turns the first two around"),
    pytest.param("*args, **kwargs", "*args, **kwargs", "yield cut(next(self.iterator))", [], id="yields others"),
]


@pytest.mark.parametrize(("taken", "given", "drawn", "lines"), SUBCLASSES)
@pytest.mark.parametrize("is_foreign", [True, False])
def test_a_subclass(tmp_path: Path, is_foreign: bool, taken: str, given: str, drawn: str, lines: list[str]) -> None:
    endless = ENDLESS.format(taken=taken, given=given, drawn=drawn)
    files = {"endless": endless} if is_foreign else {}
    begin = "from endless import Endless\n" if is_foreign else endless
    result = found(tmp_path, f"{begin}{MADE}\n{LOOP}", **files)
    assert [line for code, line in result if code == "DATA02"] == lines


EPOCHS = """
for epoch in range(9):
    for x, y in loader:
        criterion(model(x.to(device)), y.to(device)).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("begin", "codes"),
    [
        pytest.param("self.iterator = super().__iter__()", [], id="goes on with one iterator"),
        pytest.param("self.count = 0", ["DATA03"], id="starts over"),
    ],
)
@pytest.mark.parametrize("is_foreign", [True, False])
def test_workers_of_a_loader_that_goes_on_with_its_iterator_live_on(
    tmp_path: Path, is_foreign: bool, begin: str, codes: list[str]
) -> None:
    endless = ENDLESS.format(taken="*args, **kwargs", given="*args, **kwargs", drawn=DRAWN)
    if codes:
        endless = endless.replace("self.iterator = super().__iter__()", begin).replace(
            f"for _ in range(len(self)):\n            {DRAWN}", "yield from super().__iter__()"
        )
    files = {"endless": endless} if is_foreign else {}
    main = ("from endless import Endless\n" if is_foreign else endless) + MADE + EPOCHS
    assert [code for code, _ in found(tmp_path, main, ("DATA03",), **files)] == codes


def test_an_option_that_the_constructor_of_a_subclass_of_the_file_turns_off(tmp_path: Path) -> None:
    given = "*args, pin_memory=False, **kwargs"
    result = found(tmp_path, f"{ENDLESS.format(taken='*args, **kwargs', given=given, drawn=DRAWN)}{MADE}\n{LOOP}")
    assert ("DATA02", MADE) in result


ROUNDS = """
from endless import Endless, rounds
{made}
{batches}
for step in range(1000):
    x = next(batches).to(device)
    criterion(model(x), x).backward()
"""


@pytest.mark.parametrize(
    ("batches", "codes"),
    [
        pytest.param("batches = rounds(loader)", ["DATA02", "XFER02"], id="a generator of another file"),
        pytest.param("batches = rounds(images)", [], id="of something else"),
    ],
)
def test_a_generator_that_goes_round_a_loader(tmp_path: Path, batches: str, codes: list[str]) -> None:
    endless = ENDLESS.format(taken="*args, **kwargs", given="*args, **kwargs", drawn=DRAWN)
    result = found(tmp_path, ROUNDS.format(made=MADE, batches=batches), endless=endless)
    assert [code for code, _ in result] == codes


WRAPPED = """
from prefetch import BackgroundGenerator

class Prefetching(DataLoader):
    def __iter__(self):
        {}

loader = Prefetching(images, 64)
"""


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        pytest.param("return BackgroundGenerator(super().__iter__(), max_prefetch=4)", True, id="around its own"),
        pytest.param("yield from super().__iter__()", True, id="its own"),
        pytest.param("return BackgroundGenerator(self.dataset)", False, id="around something else"),
        pytest.param("yield from self.queue", False, id="something else"),
    ],
)
def test_a_subclass_with_an_iterator_of_its_own(tmp_path: Path, body: str, is_found: bool) -> None:
    result = found(tmp_path, WRAPPED.format(body) + LOOP)
    assert (("DATA02", "loader = Prefetching(images, 64)") in result) is is_found


# -- batches on their way


def test_batches_that_a_function_of_another_file_copies_in_a_list(tmp_path: Path) -> None:
    main = """
    import tools
    left, right = DataLoader(images, 64, num_workers=4), DataLoader(images, 64, num_workers=4)
    for (x, _), (y, _) in zip(left, right):
        x, y = tools.cuda([x, y])
        criterion(model(x), model(y)).backward()
    """
    tools = "def cuda(parts):\n    return [part.cuda() for part in parts]\n"
    assert [code for code, _ in found(tmp_path, main, tools=tools)] == ["DATA02", "DATA02"]


@pytest.mark.parametrize(
    ("computed", "codes"),
    [
        pytest.param("clip = x.clone().unsqueeze(2).repeat(1, 1, 8, 1, 1)", ["DATA02"], id="of the batch"),
        pytest.param("clip = torch.ones(x.shape)", [], id="of its shape alone"),
    ],
)
def test_what_a_variable_holds_that_was_computed_from_a_batch(tmp_path: Path, computed: str, codes: list[str]) -> None:
    main = f"""
    def train(loader):
        for x, y in loader:
            {computed}
            model(clip.cuda()).sum().backward()

    train(DataLoader(images, 64, num_workers=4))
    """
    assert [code for code, _ in found(tmp_path, main)] == codes


PREPARED = """
from accelerate import Accelerator

accelerator = Accelerator()
loader = DataLoader(images, 64, num_workers=4)
network, {} = accelerator.prepare(nn.Linear(8, 2), loader)
for x, y in loader:
    accelerator.backward(criterion(network(x), y))
"""


@pytest.mark.parametrize(
    ("target", "codes"),
    [pytest.param("loader", ["DATA02"], id="the loader"), pytest.param("other", [], id="another variable")],
)
def test_a_loader_that_accelerate_prepares(tmp_path: Path, target: str, codes: list[str]) -> None:
    assert [code for code, _ in found(tmp_path, PREPARED.format(target))] == codes


PROMPTED = """
from accelerate import Accelerator
from diffusers import StableDiffusionPipeline

accelerator = Accelerator()
loader = accelerator.prepare(DataLoader(prompts, 64, num_workers=4))
pipeline = StableDiffusionPipeline.from_pretrained("runwayml/stable-diffusion-v1-5").to(accelerator.device)
network = nn.Linear(8, 2).to(accelerator.device)
for batch in loader:
    images = {}
"""


@pytest.mark.parametrize(
    ("made", "codes"),
    [
        pytest.param('pipeline(batch["prompt"]).images', [], id="prompts for a pipeline"),
        pytest.param('pipeline(network(batch["x"])).images', ["DATA02"], id="a network beside it"),
        pytest.param('network(batch["x"])', ["DATA02"], id="a network"),
    ],
)
def test_what_a_pipeline_is_asked_for_is_text(tmp_path: Path, made: str, codes: list[str]) -> None:
    assert [code for code, _ in found(tmp_path, PROMPTED.format(made))] == codes


# -- options

UPDATED = """
options, more = {{"batch_size": 64}}, {{}}
if torch.cuda.is_available():
    cuda = {{"num_workers": 4, "pin_memory": True}}
    options.update(cuda)
    {call}
loader = DataLoader(images, **options)
for x, y in loader:
    criterion(model(x.to(device)), x).backward()
"""


@pytest.mark.parametrize(
    ("call", "codes"),
    [
        pytest.param("more.update(cuda)", ["XFER02"], id="of a dict that two others take over"),
        pytest.param("settings.update(cuda)", [], id="of a dict that something unknown is given"),
    ],
)
def test_options_that_an_update_brings_in(tmp_path: Path, call: str, codes: list[str]) -> None:
    assert [code for code, _ in found(tmp_path, UPDATED.format(call=call))] == codes
