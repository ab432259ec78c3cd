"""DATA01 asks no workers for samples that lie in memory already."""

from __future__ import annotations

import pytest

from tests.rules.data.test_no_workers import HEADER
from tests.rules.data.unpinned_loaders import script
from tests.support import findings


@pytest.mark.parametrize(("cut", "count"), [("[start:]", 0), ("", 1)])
def test_what_can_be_cut_is_a_list_that_lies_in_memory(cut: str, count: int) -> None:
    code = f"""
        import torch
        from torch.utils.data import DataLoader
        from torchvision.datasets import ImageFolder

        class Client:
            def __init__(self, samples: ImageFolder, net):
                self.samples = samples
                self.net = net.cuda()

            def train(self, start):
                for x, y in DataLoader(self.samples{cut}, 8):
                    torch.nn.functional.cross_entropy(self.net(x.cuda()), y.cuda()).backward()
        """
    assert len(findings(code, "DATA01")) == count


TEXTS = """
class Texts(Dataset):
    def __init__(self, texts, vocabulary):
        self.texts = texts
        self.vocabulary = vocabulary

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.texts[i]

    def collate(self, texts):
        return {tokens}


texts = Texts([["a", "b"]], vocabulary)
loader = DataLoader(texts, 64, pin_memory=True, collate_fn=texts.collate)
"""


@pytest.mark.parametrize(
    ("tokens", "found"),
    [
        ("torch.LongTensor(self.vocabulary.encode_batch(texts, 128))", 1),
        ("self.tokenizer(texts, padding=True)", 1),
        ("torch.LongTensor(texts)", 0),
        ("model.encode(torch.stack(texts))", 0),
        ('torch.tensor([list(text.encode("utf-8")) for text in texts])', 0),
        ("torch.tensor([list(text.encode()) for text in texts])", 0),
    ],
)
def test_text_that_is_looked_up_for_each_batch_is_not_ready_in_memory(tokens: str, found: int) -> None:
    messages = [finding.message for finding in findings(script(TEXTS.format(tokens=tokens)), "DATA01")]
    assert len(messages) == found
    assert all("are encoded by the process" in message for message in messages)


def test_wrappers_that_options_choose_are_each_asked_once() -> None:
    """`images = Pairs(images)` in every branch of a loop: one way back for each order of the options."""
    names = [f"Wrapper{number}" for number in range(12)]
    classes = "".join(f"class {name}(Wrapper):\n    pass\n\n\n" for name in names)
    choices = "".join(f"        if option == {name!r}:\n            images = {name}(images)\n" for name in names)
    code = (
        "import torch\nfrom torch.utils.data import DataLoader, Dataset\n\n\n"
        "class Wrapper(Dataset):\n    def __init__(self, images):\n        self.images = images\n\n"
        "    def __getitem__(self, i):\n        return self.images[i]\n\n\n"
        f"{classes}def batches(images, options, net):\n    for option in options:\n{choices}"
        "    loader = DataLoader(images, 8, num_workers=2)\n"
        "    for epoch in range(9):\n        for x in loader:\n            net(x.cuda()).sum().backward()\n"
    )
    assert len(findings(code, "DATA02")) == 1


SPLITS = """\
def load(files):
    sets = {sets}
    loaders = {{split: DataLoader(sets[split], 8{given}) for split in {splits}}}
    for split in loaders:
        for x, y in loaders[split]:
            criterion(model(x.to(device)), y.to(device)).backward()
"""
PHOTOS = "{split: datasets.ImageFolder(split) for split in ('train', 'val')}"


@pytest.mark.parametrize(
    ("sets", "given", "splits", "count"),
    [
        (PHOTOS, "", "('train', 'val')", 1),
        ("{'train': datasets.ImageFolder('t'), 'val': datasets.ImageFolder('v')}", "", "['train', 'val']", 1),
        ("[datasets.ImageFolder('t'), datasets.ImageFolder('v')]", "", "(0, 1)", 1),
        ("{'train': datasets.ImageFolder('t'), 'val': TensorDataset(torch.ones(3))}", "", "('train', 'val')", 1),
        ("{split: torch.ones(3) for split in ('train', 'val')}", "", "('train', 'val')", 0),
        (PHOTOS, ", num_workers=0", "('train', 'val')", 1),
        (PHOTOS, ", num_workers=0", "files", 0),
    ],
)
def test_one_of_several_datasets(sets: str, given: str, splits: str, count: int) -> None:
    assert len(findings(HEADER + SPLITS.format(sets=sets, given=given, splits=splits), "DATA01")) == count


PART = """\
class Part(Dataset):
    def __init__(self, whole, rows):
        self.whole = whole
        self.rows = rows

    def __getitem__(self, i):
        return self.whole[self.rows[i]]

loader = DataLoader(Part({whole}, [1, 2]), 8)
for x, y in loader:
    criterion(model(x.to(device)), y.to(device)).backward()
"""


@pytest.mark.parametrize(("whole", "count"), [("images", 1), ("torch.ones(3)", 0)])
def test_a_part_of_a_dataset_has_no_samples_of_its_own(whole: str, count: int) -> None:
    assert len(findings(HEADER + PART.format(whole=whole), "DATA01")) == count


SCALED = """\
def scaled(x, top=1.0):
    x = x * top
    {returned}

for x, y in DataLoader(images, 8):
    x = scaled(x)
    criterion(model(x.to(device)), torch.ones(8, device=device)).backward()
"""


@pytest.mark.parametrize(("returned", "count"), [("return x", 1), ("return torch.ones(8)", 0)])
def test_batches_that_a_function_of_the_file_computes_with(returned: str, count: int) -> None:
    assert len(findings(HEADER + SCALED.format(returned=returned), "DATA01")) == count


CUTS = """
class Cuts(Dataset):
    def __init__(self, text):
        self.text = text

    def __len__(self):
        return len(self.text)

    def __getitem__(self, i):
        start = {start}
        return self.text[start : start + 9].clone().long()


loader = DataLoader(Cuts(bytes_of_a_book), 64, pin_memory=True)
"""


@pytest.mark.parametrize(
    ("start", "found"),
    [
        ("torch.randint(0, self.text.size(0) - 9, (1,)).item()", 0),
        ("random.randrange(len(self.text) - 9)", 0),
        ("np.random.randint(len(self.text) - 9)", 0),
        ("self.places.find(i)", 1),
    ],
)
def test_a_stretch_at_a_place_that_is_drawn_lies_in_memory(start: str, found: int) -> None:
    code = "import random\nimport numpy as np\n" + script(CUTS.format(start=start))
    assert len(findings(code, "DATA01")) == found


def test_a_dataset_that_comes_through_many_functions_by_two_ways_each() -> None:
    handed_on = [f"def run{i}(images):\n    run{i - 1}(images)\n    run{i - 1}(images)\n" for i in range(1, 40)]
    code = [
        "from torchvision.datasets import ImageFolder",
        "def run0(images):\n    for x, y in DataLoader(images, 8, pin_memory=True):\n        net(x.cuda())\n",
        *handed_on,
        "run39(ImageFolder('photos'))",
    ]
    assert len(findings(script("\n".join(code) + "\n", loop=""), "DATA01")) == 1


EITHER = """
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torchvision.datasets import ImageFolder


class Lines(Dataset):
    def __init__(self, path):
        self.path = path

    def __getitem__(self, i):
        return torch.load(self.path + str(i))


class Tagger:
    def __init__(self, model, lazily):
        self.model = model.cuda()
        self.lazily = lazily

    def examples(self, path):
        if self.lazily:
            found = Lines(path)
        {several}
        else:
            found = {other}
        return found

    def train(self, path):
        lines = self.examples(path)
        for x, y in DataLoader(lines, 8):
            torch.nn.functional.cross_entropy(self.model(x.cuda()), y.cuda()).backward()
"""


SEVERAL = "elif path == 'text':\n            found = Lines('text/' + path)"


@pytest.mark.parametrize(
    ("several", "other", "count"),
    [
        ("", "TensorDataset(torch.ones(8, 3))", 0),
        ("", "Lines(path + 'test')", 1),
        ("", "ImageFolder(path)", 1),
        (SEVERAL, "TensorDataset(torch.ones(8, 3))", 1),
    ],
)
def test_what_may_be_tensors_in_memory_just_as_well_needs_no_workers(several: str, other: str, count: int) -> None:
    assert len(findings(EITHER.format(several=several, other=other), "DATA01")) == count
