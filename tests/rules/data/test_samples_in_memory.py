"""DATA01 asks no workers for samples that lie in memory already."""

from __future__ import annotations

import pytest

from tests.rules.data.unpinned_loaders import script
from tests.support import findings


@pytest.mark.parametrize(("cut", "count"), [("[start:]", 0), ("", 1)])
def test_what_can_be_cut_is_a_list_that_lies_in_memory(cut: str, count: int) -> None:
    code = f"""
        import torch
        from torch.utils.data import DataLoader

        class Client:
            def __init__(self, samples, net):
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
