"""XFER02: the host waits for a copy to the GPU that could overlap with its own work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.rules.xfer.copied_batches import HEADER, LOOK_ALIKES, VARIANTS, script
from tests.support import findings, fixed
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Applicability
from torchlint.fixing.passes import fix_source, fix_together
from torchlint.semantics.project import Project
from torchlint.source import Source


def marked(code: str) -> list[int]:
    """One entry per finding: the comment `# found` ends a line with one, `# found twice` a line with two."""
    lines = list(enumerate(code.splitlines(), 1))
    once = [number for number, line in lines if line.endswith(("# found", "# found twice"))]
    return sorted(once + [number for number, line in lines if line.endswith("# found twice")])


REWRITES = {
    "keyword appended": (
        """\
        for x, y in loader:
            x, y = x.to(device), y.cuda()
            criterion(model(x), y).backward()
        """,
        """\
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.cuda(non_blocking=True)
            criterion(model(x), y).backward()
        """,
    ),
    "false replaced": (
        """\
        for x, y in loader:
            x = x.to(device=device, dtype=torch.float32, non_blocking=False)  # images
            criterion(model(x), y).backward()
        """,
        """\
        for x, y in loader:
            x = x.to(device=device, dtype=torch.float32, non_blocking=True)  # images
            criterion(model(x), y).backward()
        """,
    ),
    "comprehension": (
        """\
        for batch in loader:
            batch = {k: v.to(device) for k, v in batch.items()}
            criterion(model(batch["x"]), batch["y"]).backward()
        """,
        """\
        for batch in loader:
            batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
            criterion(model(batch["x"]), batch["y"]).backward()
        """,
    ),
}

UNFIXED = {
    "the batch is written on the host after the copy began": script(
        """\
        for x, y in loader:
            moved = x.to(device)
            x.mul_(0.5)
            print(model(moved).mean(), x.mean())
        """
    ),
    "an element of the batch is written": script(
        """\
        for batch in loader:
            moved = batch["x"].to(device)
            batch["x"][0] = 0
            print(model(moved).mean(), batch["x"].mean())
        """
    ),
    "the batch is added to": script(
        """\
        for x, y in loader:
            moved = x.to(device)
            x += 1
            print(model(moved).mean(), x.mean())
        """
    ),
    "a function of the file writes to the batch": script(
        """\
        def corrupt(pixels):
            pixels[:, 0] = 0

        for x, y in loader:
            moved = x.to(device)
            corrupt(x)
            print(model(moved).mean(), x.mean())
        """
    ),
    "a function of torch writes to the batch": script(
        """\
        for x, y in loader:
            moved = x.to(device)
            torch.clamp(x, 0, 1, out=x)
            print(model(moved).mean(), x.mean())
        """
    ),
    "the batch is written through numpy": script(
        """\
        for x, y in loader:
            moved = x.to(device)
            pixels = x.numpy()
            pixels[:, 0] = 0
            print(model(moved).mean(), x.mean())
        """
    ),
}


@pytest.mark.parametrize("code", VARIANTS.values(), ids=VARIANTS.keys())
def test_variants_are_found(code: str) -> None:
    assert [finding.line for finding in findings(code, "XFER02")] == marked(code)


@pytest.mark.parametrize("code", LOOK_ALIKES.values(), ids=LOOK_ALIKES.keys())
def test_look_alikes_stay_silent(code: str) -> None:
    assert findings(code, "XFER02") == []


@pytest.mark.parametrize(("before", "after"), REWRITES.values(), ids=REWRITES.keys())
def test_rewrites(before: str, after: str) -> None:
    assert fixed(script(before), "XFER02", unsafe=False) == script(after)


@pytest.mark.parametrize("code", UNFIXED.values(), ids=UNFIXED.keys())
def test_no_safe_fix_where_the_host_writes_the_batch(code: str) -> None:
    assert fixed(code, "XFER02") == code


PROGRAM = """\
import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, i):
        return torch.tensor([i, i * i]) * torch.ones(2), {"index": i}


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
seen = []
for x, extra in DataLoader(Squares(), 4, shuffle=True, pin_memory=torch.cuda.is_available()):
    moved = {key: value.to(device, torch.float64) for key, value in extra.items()}
    seen += [x.to(device).sum(1), moved["index"]]
"""


def test_copies_of_one_line_get_a_line_each_where_it_would_be_too_long() -> None:
    name = "x" * 25
    code = script(f"for {name}, y in loader:\n    {name}, y = {name}.to(device), y.to(device)\n    model({name}), y\n")
    assert len(max(code.splitlines(), key=len)) < 100
    apart = f"    {name} = {name}.to(device, non_blocking=True)\n    y = y.to(device, non_blocking=True)\n"
    assert apart in fixed(code, "XFER02", unsafe=False)
    short = code.replace(name, "x")
    assert "    x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)\n" in fixed(short, "XFER02")


def test_the_batches_stay_the_same() -> None:
    changed = fixed(PROGRAM, "XFER02", unsafe=False)
    assert changed.count("non_blocking=True") == 2
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    exec(compile(PROGRAM, "before", "exec"), before)
    exec(compile(changed, "after", "exec"), after)
    assert len(before["seen"]) == len(after["seen"]) == 6
    assert all(a.equal(b) for a, b in zip(before["seen"], after["seen"], strict=True))


def test_the_fix_is_only_shown_where_the_device_may_be_that_of_apple() -> None:
    code = PROGRAM.replace('else "cpu")', 'else "mps")')
    assert fixed(code, "XFER02", unsafe=True) == code
    assert [finding.fix and finding.fix.applicability for finding in findings(code, "XFER02")] == [
        Applicability.DISPLAY,
        Applicability.DISPLAY,
    ]


def test_a_word_that_only_ends_like_the_device_of_apple_says_nothing_of_it() -> None:
    code = PROGRAM + "import json\nprint(json.dumps({}))\n"
    assert fixed(code, "XFER02", unsafe=False).count("non_blocking=True") == 2


PINNED = ", pin_memory=torch.cuda.is_available()"


def test_the_loader_is_pinned_in_the_same_change() -> None:
    code = PROGRAM.replace(PINNED, ", num_workers=2")
    expected = PROGRAM.replace(PINNED, f", num_workers=2,\n{' ' * 27}{PINNED[2:]}")
    expected = expected.replace("float64)", "float64, non_blocking=True)").replace(
        "device).", "device, non_blocking=True)."
    )
    expected = expected.replace("True) for key", f"True)\n{' ' * 13}for key")
    assert fixed(code, "XFER02", unsafe=False) == fixed(code, "XFER02", "DATA02") == expected


def test_a_loader_without_workers_is_not_pinned_unasked() -> None:
    code = PROGRAM.replace(PINNED, "")
    assert len(findings(code, "XFER02")) == 2
    assert fixed(code, "XFER02") == code


def test_copies_of_a_loader_that_cannot_be_pinned_stay() -> None:
    code = PROGRAM.replace(PINNED, ", **options").replace("seen = []", "options = {'timeout': 9}\nprint(options)")
    assert len(findings(code, "XFER02")) == 2
    assert fixed(code, "XFER02") == code


def test_a_batch_that_is_only_read_back_needs_no_copy() -> None:
    body = """\
        with torch.no_grad():
            for x, y in loader:
                out = model(x.to(device))
                y = y.to(device).float()
                {}
                print(out.argmax(1).cpu(), y.cpu().numpy())
        """
    after = fixed(script(body.format("pass")), "XFER02")
    assert after.count("non_blocking=True") == 1
    assert "y = y.to(device).float()" in after
    assert fixed(script(body.format("print(criterion(out, y))")), "XFER02").count("non_blocking=True") == 2


COLLATE = """\
def pairs(samples):
    return torch.stack([x for x, _ in samples]), {"index": torch.tensor([extra["index"] for _, extra in samples])}


def padded(samples):
    return tokenizer.pad(samples)


"""


@pytest.mark.parametrize(("name", "is_safe"), [("pairs", True), ("padded", False), ("nested", False)])
def test_the_fix_is_safe_only_for_tensors(name: str, is_safe: bool) -> None:
    """A collate function may make objects of a class whose `to` does not take the argument."""
    code = PROGRAM.replace("torch.manual_seed", COLLATE + "torch.manual_seed").replace(
        "shuffle=True", f"collate_fn={name}"
    )
    code = code.replace("import torch\n", "import torch\nfrom batches import nested, tokenizer\n", 1)
    assert (fixed(code, "XFER02", unsafe=False) != code) is is_safe
    assert fixed(code, "XFER02", unsafe=True).count("non_blocking=True") == 2


def test_batches_of_a_class_that_torch_cannot_pin_are_left_alone() -> None:
    own = COLLATE.replace("torch.stack([x for x, _ in samples])", "Padded(torch.stack([x for x, _ in samples]))")
    own = own.replace("    return Padded", "    batch = list(zip(*samples))\n    batch[0] = Padded").replace(
        ', {"index": torch.tensor([extra["index"] for _, extra in samples])}', "\n    return tuple(batch)"
    )
    own = "class Padded:\n    def to(self, device):\n        return self\n\n\n" + own
    code = PROGRAM.replace("torch.manual_seed", own + "torch.manual_seed").replace("shuffle=True", "collate_fn=pairs")
    assert "batch[0] = Padded(" in code
    assert findings(code, "XFER02") == []
    assert len(findings(code.replace("batch[0] = Padded(", "batch[0] = list("), "XFER02")) > 0


def test_a_tensor_that_was_pinned_for_the_copy() -> None:
    code = """
        import torch

        def batch(data, device):
            x = torch.stack(data)
            return x.pin_memory().to(device)

        def train(model, data, device):
            for _ in range(100):
                model(batch(data, device)).sum().backward()
    """
    assert [finding.line for finding in findings(code, "XFER02")] == [5]
    assert "x.pin_memory().to(device, non_blocking=True)" in fixed(code, "XFER02", unsafe=False)
    assert findings(code.replace("for _ in range(100)", "if device"), "XFER02") == []
    assert findings(code.replace("x.pin_memory()", "x.contiguous()"), "XFER02") == []
    assert [finding.line for finding in findings(code.replace("memory()", "memory().flatten()"), "XFER02")] == []
    assert [finding.line for finding in findings(code.replace("memory()", "memory().squeeze()"), "XFER02")] == [5]


ENGINE = """\
import torch


def train(model, loader, optimizer, device):
    for images, labels in loader:
        images = images.to(device)
        loss = torch.nn.functional.cross_entropy(model(images), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
MAIN = """
from engine import train

for epoch in range(5):
    train(model, loader, optimizer, device)
"""


def elsewhere(folder: Path, main: str, engine: str = ENGINE) -> list[int]:
    (folder / "main.py").write_text(main)
    (folder / "engine.py").write_text(engine)
    source = Source.from_text(engine, folder / "engine.py")
    found = lint(source, Settings.selecting("XFER02"), strict=True, project=Project())
    return [finding.line for finding in found]


def test_a_loader_that_another_file_hands_in(tmp_path: Path) -> None:
    assert elsewhere(tmp_path, HEADER + MAIN) == [6, 7]


@pytest.mark.parametrize(("returned", "lines"), [("loader", [6, 7]), ("[loader]", []), ("wrapped(loader)", [])])
def test_a_loader_that_a_third_file_makes(tmp_path: Path, returned: str, lines: list[int]) -> None:
    made = f"    loader = DataLoader(images, 64, pin_memory=True, num_workers=4)\n    return {returned}\n"
    data = "from torch.utils.data import DataLoader\n\ndef load(images):\n" + made
    (tmp_path / "data.py").write_text(data)
    main = (HEADER + MAIN).replace("from engine", "from data import load\nloader = load(images)\nfrom engine")
    head, _, tail = main.partition("loader = DataLoader(")
    assert elsewhere(tmp_path, head + tail.partition("\n")[2]) == lines


def test_the_loader_of_another_file_is_pinned_in_the_same_change(tmp_path: Path) -> None:
    main = (HEADER + MAIN).replace("pin_memory=True, ", "")
    assert elsewhere(tmp_path, main) == [6, 7]
    sources = [Source.read(tmp_path / name) for name in ("engine.py", "main.py")]
    settings = {source.path: replace(Settings.selecting("XFER02"), unsafe_fixes=True) for source in sources}
    engine, program = (fixed.source.text for fixed in fix_together(sources, settings, Project()).values())
    assert engine.count("non_blocking=True") == 2
    assert "DataLoader(images, 64, num_workers=4, pin_memory=torch.cuda.is_available())" in program


@pytest.mark.parametrize(("collate", "is_applied"), [("", True), (", collate_fn=batches.nested", False)])
def test_what_a_loader_of_another_file_collates_is_out_of_sight(tmp_path: Path, collate: str, is_applied: bool) -> None:
    """Its class may have a `to` that does not take the argument."""
    header = HEADER.replace("pin_memory=True", "pin_memory=True" + collate)
    assert elsewhere(tmp_path, "import batches\n" + header + MAIN) == [6, 7]
    source = Source.read(tmp_path / "engine.py")
    for finding in lint(source, Settings.selecting("XFER02"), strict=True, project=Project()):
        assert finding.fix is not None
        assert (finding.fix.applicability is not Applicability.DISPLAY) is is_applied


def test_a_loader_that_nobody_knows_may_not_be_pinned(tmp_path: Path) -> None:
    main = (HEADER + MAIN).replace("loader = DataLoader", "loader = make_loader")
    assert elsewhere(tmp_path, main) == []
    assert elsewhere(tmp_path, (HEADER + MAIN) + "train(model, make_loader(), optimizer, device)\n") == []


def test_a_batch_that_the_host_writes_to_is_not_copied_in_the_background(tmp_path: Path) -> None:
    engine = ENGINE.replace("loss.backward()", "loss.backward()\n        labels[0] = 1")
    assert elsewhere(tmp_path, HEADER + MAIN, engine) == [6, 7]
    source = Source.from_text(engine, tmp_path / "engine.py")
    result = fix_source(source, Settings.selecting("XFER02"), unsafe=True, strict=True, project=Project())
    assert "labels.to(device))" in result.source.text


@pytest.mark.parametrize(("workers", "count"), [("args.workers", 1), ("4", 1), ("0", 0)])
def test_workers_that_pin_their_batches_make_them_on_the_host_whatever_the_default_type(
    workers: str, count: int
) -> None:
    code = f"""
torch.set_default_tensor_type("torch.cuda.FloatTensor")
loader = DataLoader(images, 64, pin_memory=True, num_workers={workers})
for inputs in loader:
    loss = model(inputs.to(device)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    assert len(findings(HEADER + code, "XFER02")) == count


@pytest.mark.parametrize(
    ("before", "moved"),
    [("x = x * 2", "x, y = x.to(device), y.to(device)"), ("z = x + 1", "x, y, z = x, y.to(device), z.to(device)")],
    ids=["it is computed on the host", "beside one that is"],
)
def test_no_copy_goes_on_while_another_beside_it_waits(before: str, moved: str) -> None:
    """What the host has computed is in pageable memory."""
    code = script(f"for x, y in loader:\n    {before}\n    {moved}\n    model(x), y\n")
    assert findings(code, "XFER02")
    assert fixed(code, "XFER02") == code
    assert "non_blocking" in fixed(code.replace(before, "z = y"), "XFER02")


@pytest.mark.parametrize(
    ("noise", "held_out", "is_fixed"),
    [
        ("torch.randn(3).to(device)", "x, y = x.to(device), y.to(device)", False),
        ("torch.randn(3, device=device)", "x, y = x.to(device), y.to(device)", True),
        ("torch.randn(3).to(device)", "images, y = x.to(device), y.to(device)", False),
        ("torch.randn(3).to(device)", "images, y = x.cuda(), y.cuda()", True),
    ],
)
def test_the_same_copy_of_another_loop_that_waits(noise: str, held_out: str, is_fixed: bool) -> None:
    code = script(
        f"""
        for x, z in loader:
            x, z = x.to(device), z.to(device)
            noise = {noise}
            criterion(model(x) + noise.mean(), z).backward()

        with torch.no_grad():
            for x, y in loader:
                {held_out}
                print(y.shape)
        """
    )
    after = fixed(code, "XFER02", unsafe=True)
    assert (held_out not in after) is is_fixed


def test_no_copy_goes_on_while_one_in_another_branch_waits() -> None:
    copies = "    if flip:\n        z = (y.flip(0) * 2).cuda()\n    else:\n        z = y.cuda()\n"
    code = script(f"for x, y in loader:\n{copies}    model(z)\n")
    assert findings(code, "XFER02")
    assert fixed(code, "XFER02") == code
    assert "non_blocking" in fixed(code.replace("(y.flip(0) * 2).cuda()", "None"), "XFER02")


PADDED = """\
import torch
from torch.utils.data import DataLoader
from torchvision import datasets
from batches import collate

images = datasets.CIFAR10("data")
loader = DataLoader(images, 64, num_workers=4, pin_memory=True, collate_fn=collate)
net = torch.nn.Linear(4, 4).cuda()
for batch in loader:
    {}
    print(net({}).sum())
"""


@pytest.mark.parametrize(
    ("copied", "used", "is_applied"),
    [
        ('batch = batch.to("cuda")', "batch.images", False),
        ('batch = batch.to("cuda")', 'batch["images"]', False),
        ('moved = batch.to("cuda")', "**moved", False),
        ('images = batch["images"].to("cuda")', "images", True),
        ('batch = batch.to("cuda")', "batch.flatten(1)", True),
        ('batch = batch.to("cuda")', "batch.data", True),
    ],
)
def test_an_object_that_code_out_of_sight_makes_may_not_take_the_argument(
    copied: str, used: str, is_applied: bool
) -> None:
    code = PADDED.format(copied, used)
    assert len(findings(code, "XFER02")) == 1
    assert ("non_blocking" in fixed(code, "XFER02")) is is_applied


def test_copies_side_by_side_go_on_together_or_not_at_all() -> None:
    code = PADDED.replace("for batch in", "for batch, other in")
    both = 'batch = batch.to("cuda")\n    other = other.to("cuda")'
    assert fixed(code.format(both, "batch"), "XFER02").count("non_blocking=True") == 2
    assert "non_blocking" not in fixed(code.format(both, "other.images"), "XFER02")


@pytest.mark.parametrize(("given", "count"), [("", 0), ("pin_memory=pinned", 1), ("pin_memory=True", 1)])
def test_an_option_that_is_false_where_nobody_gives_it(given: str, count: int) -> None:
    code = f"""\
import torch
from torch.utils.data import DataLoader

def loaders(dataset, pin_memory=False):
    return DataLoader(dataset, batch_size=8, num_workers=2, pin_memory=pin_memory)

def train(model, dataset, criterion, optimizer, pinned):
    loader = loaders(dataset, {given})
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x.cuda()), y).backward()
        optimizer.step()
"""
    assert len(findings(code, "XFER02")) == count
