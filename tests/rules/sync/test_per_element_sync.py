"""SYNC07: tensors that are read from the device number by number."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import TORCH_ONLY, evaluation, line_of, result_of, training
from tests.support import findings, fixed
from torchlint.finding import Applicability

ALL = ("SYNC01", "SYNC02", "SYNC03", "SYNC04", "SYNC06", "SYNC07", "SYNC09")

ONE_BY_ONE = {
    "a comprehension": evaluation("best = out.argmax(1)\nkept.extend([b.item() for b in best])", "kept = []"),
    "a loop": evaluation("best = out.argmax(1)\nfor b in best:\n    kept.append(b.item())", "kept = []"),
    "int": evaluation("best = out.argmax(1)\nfor b in best:\n    kept.append(int(b))", "kept = []"),
    "an expression": evaluation("for b in out.argmax(1):\n    kept.append(b.item())", "kept = []"),
    "with its number": evaluation("for i, b in enumerate(out.argmax(1)):\n    kept.append((i, b.item()))", "kept = []"),
    "two at once": evaluation(
        "for p, t in zip(out.argmax(1), y):\n    matrix[t.item(), p.item()] += 1", "matrix = np.zeros((3, 3))"
    ),
    "places in an array": evaluation(
        "for t, p in zip(y.view(-1), out.argmax(1).view(-1)):\n    matrix[t.long(), p.long()] += 1",
        "matrix = np.zeros((3, 3))",
    ),
    "places in a list, under a name": evaluation(
        "hits = out.argmax(1) == y\nfor i in range(4):\n    label = y[i]\n    right[label] += hits[i]",
        "right = [0.0] * 4",
    ),
    "the words of a row": evaluation(
        "for row in out.argmax(-1):\n    kept.append(' '.join([vocabulary.words[i] for i in row]))", "kept = []"
    ),
    "the words of a row, by steps": evaluation(
        "for row in out.argmax(-1):\n    text = [vocabulary.words[i] for i in row]\n    print(' '.join(text))"
    ),
    "the letters of a text": evaluation("for i in out.argmax(-1):\n    text += vocabulary.letters[i]", "text = ''"),
    "by index": evaluation("best = out.argmax(1)\nfor i in range(9):\n    kept.append(best[i].item())", "kept = []"),
    "by index and counted": evaluation(
        "hits = out.argmax(1).eq(y)\nfor i in range(4):\n    total[i] += hits[i].item()", "total = [0] * 4"
    ),
    "bounds of slices": evaluation(
        "ends = (out > 0).sum(1)\nfor i, end in enumerate(ends):\n    out[i, end:] = 0",
    ),
    "bounds of slices by index": evaluation(
        "ends = (out > 0).sum(1)\nfor i in range(9):\n    kept.append(names[i][: ends[i]])", "names = kept = make()"
    ),
    "bounds counted from each": evaluation(
        "ends = (out > 0).sum(1)\nfor i in range(9):\n    mask[i, : ends[i] - 1] = 1"
    ),
    "under a name": evaluation(
        "best = out.argmax(1)\nfor i in range(9):\n    label = best[i]\n    kept.append(label.item())", "kept = []"
    ),
    "the class of a row under a name": evaluation(
        "for i in range(9):\n    label = torch.argmax(out[i])\n    total += int(label) == 2", "total = 0"
    ),
    "put into a tensor of the host": evaluation(
        "best = out.topk(1)[1]\nnext_x = torch.LongTensor([[best[i][0] for i in range(9)]]).to(device)"
    ),
    "put into a tensor of the host as they come": evaluation("next_x = torch.tensor([b for b in out.argmax(1)])"),
    "a test of each": training("for b in out.argmax(1):\n    if b.item() == 2:\n        seen += 1", "seen = 0"),
    "a comparison of each": evaluation(
        "best = out.argmax(1)\nkept = np.array([1 if b == t else 0 for b, t in zip(best, y)])", "kept = 0"
    ),
    "in a table": training(
        "for i in range(9):\n    for j in range(3):\n        kept.append(float(out[i, j]))", "kept = []"
    ),
}

ROW_BY_ROW = {
    "the class of each row": evaluation("for row in out:\n    kept.append(row.argmax().item())", "kept = []"),
    "the class of each row as a place in a list": evaluation(
        "for row in out:\n    kept.append(names[row.argmax()])", "names, kept = ['cat', 'dog', 'emu'], []"
    ),
    "the class of each row by index": evaluation(
        "for i in range(9):\n    kept.append(int(torch.argmax(out[i])))", "kept = []"
    ),
    "rows of which one element is large": evaluation(
        "for i, row in enumerate(out):\n    if torch.max(row) > 0.9:\n        kept.append(i)", "kept = []"
    ),
    "rows": evaluation("for row in out:\n    kept.append(row.cpu())", "kept = []"),
    "lines of a file": evaluation(
        'best = out.max(1).values\nfor i in range(9):\n    file.write("{}\\n".format(best[i]))', "file = open(names)"
    ),
    "lines of a file of one kind": evaluation(
        "for i, row in enumerate(out):\n    if loud:\n        file.write(f'{i} {row[0]:.3f}')", "file = open(names)"
    ),
    "rows by index": evaluation("for i in range(9):\n    kept.append(out[i].detach().cpu().numpy())", "kept = []"),
    "rows beside names": evaluation(
        "for i, name in enumerate(names):\n    kept[name].append(out[i, :].tolist())", "kept = make()"
    ),
    "numbers of a row": evaluation("kept.extend([int(row[-1]) for row in out if row[0] > 0])", "kept = []"),
    "rows that a method is given": """
        import torch

        class Evaluator:
            @torch.no_grad()
            def run(self, model, loader, device):
                for batch in loader:
                    self.keep(batch["name"], model(batch["image"].to(device)))

            def keep(self, names, output):
                logit = output["logit"]
                for i, name in enumerate(names):
                    self.found[name].append(logit[i].cpu())
    """,
}

COMPARED = {
    "two by index": evaluation(
        "best = out.argmax(1)\nfor i in range(9):\n    if best[i] == y[i]:\n        hits += 1", "hits = 0"
    ),
    "two at once": evaluation("for p, t in zip(out.argmax(1), y):\n    if p != t:\n        errors += 1", "errors = 0"),
    "with a number": evaluation("for s in out[:, 0]:\n    if s > 0.5:\n        hits += 1", "hits = 0"),
    "one or the other": evaluation(
        "best = out.argmax(1)\nhits += sum([1 if best[i] == y[i] else 0 for i in range(9)])", "hits = 0"
    ),
    "the truth of each": evaluation(
        "right = out.argmax(1) == y\nkept.append([i for i in range(9) if right[i]])", "kept = []"
    ),
    "by an evaluation at intervals": training(
        "if step % 100 == 0:\n    for trial in range(9):\n        best = model(x).argmax(1)\n"
        "        hits += sum([1 if best[i] == y[i] else 0 for i in range(9)])",
        "hits = 0",
    ),
}

IN_PYTHON = {
    "the largest": ("lengths = torch.sum(out > 0, 1)\nseen += max(lengths)", "seen += lengths.max()"),
    "the smallest": ("lengths = torch.sum(out > 0, 1)\nseen += min(lengths)", "seen += lengths.min()"),
    "any of them": ("if any(torch.sum(out, 1) > 9):\n    raise ValueError", None),
    "the largest of real numbers, of which one may be NaN": ("seen += max(torch.sum(out, 1))", None),
}


@pytest.mark.parametrize(("body", "expected"), IN_PYTHON.values(), ids=IN_PYTHON)
def test_what_python_finds_out_by_comparing_elements_the_device_does_at_once(body: str, expected: str | None) -> None:
    code = evaluation(body, "seen = 0", "return seen", head=TORCH_ONLY)
    [finding] = findings(code, *ALL)
    assert (finding.code, finding.line) == ("SYNC07", line_of(code, body.splitlines()[-1 if expected else 0].strip()))
    assert (finding.fix is None) is (expected is None)
    if expected is not None:
        new = fixed(code, "SYNC07", unsafe=False)
        assert expected in new
        assert repr(result_of(code, "evaluate", 3)) == repr(result_of(new, "evaluate", 3))
        assert findings(new, *ALL) == []


SILENT = {
    "of what may be a table": evaluation("for i in out.argmax(-1):\n    kept.append(table.parts[i])", "kept = []"),
    "lines for a person to read": evaluation(
        "for i, row in enumerate(out):\n    if i == 3:\n        file.write(f'{row[0]}')\n    if names.verbose:\n"
        "        file.write(f'{row[1]}')\n    assert i < 9, f'{row[2]}'\n    print(f'{row[3]}')",
        "file = open(names)",
    ),
    "lines of the host": evaluation(
        "best = out.max(1).values.cpu()\nfor i in range(9):\n    file.write('%f' % best[i])", "file = open(names)"
    ),
    "elements of the host, under a name and in a tensor": evaluation(
        "best = out.argmax(1).tolist()\nfor i in range(9):\n    label = best[i]\n    kept.append(int(label))\n"
        "next_x = torch.LongTensor([[best[i] for i in range(9)]]).to(device)",
        "kept = []",
    ),
    "a row that the loop changes, under a name": evaluation(
        "for i in range(9):\n    row = out[i]\n    row[row > 1] = i\n    kept.append(row.cpu())", "kept = []"
    ),
    "a name that holds something else at times": evaluation(
        "for i in range(9):\n    row = out[i]\n    if i > 3:\n        row = model(row)\n    kept.append(row.cpu())",
        "kept = []",
    ),
    "tensors that are stacked on the device": evaluation(
        "kept.append(torch.stack([out[i] for i in range(9)]))", "kept = []"
    ),
    "places in a table on the device, in a dict and in a list of names": evaluation(
        "best = out.argmax(1).tolist()\nfor p in best:\n    table[p] += 1\n    kept[p] = names[p]",
        "table, kept, names = torch.zeros(3).to(device), {}, ['a', 'b', 'c']",
    ),
    "pictures on the host, of which a few are picked": evaluation(
        "pictures = x.cpu()\nfor i in (out.argmax(1) != y).nonzero()[:, 0]:\n    kept.append(pictures[i])", "kept = []"
    ),
    "places that all go to the device at once": evaluation(
        "table[out.argmax(1)] += 1", "table = torch.zeros(3).cuda()"
    ),
    "the largest of several": evaluation("kept.append(max([3, 4]))", "kept = []"),
    "the largest on the host": evaluation("kept.append(max(torch.sum(out, 1).cpu()))", "kept = []"),
    "the largest at log intervals": training("if step % 100 == 0:\n    print(max(torch.sum(out, 1)))"),
    "compared on the host": evaluation(
        "best = out.argmax(1).tolist()\nfor i in range(9):\n    if best[i] == names[i]:\n        hits += 1",
        "hits, names = 0, make()",
    ),
    "no comparison of values": evaluation(
        "for i in range(9):\n    if out[i] is None or out[i].shape[0] == 3 or len(out[i]) > 2:\n        hits += 1",
        "hits = 0",
    ),
    "compared at log intervals": training(
        "if step % 100 == 0:\n    best = out.argmax(1)\n    print([i for i in range(9) if best[i] == y[i]])"
    ),
    "bounds counted from what is on the host": evaluation(
        "ends = (out > 0).sum(1).tolist()\nfor i in range(9):\n    mask[i, : ends[i] - 1] = 1"
    ),
    "rows on a condition": evaluation(
        "for row in out:\n    if wanted(row):\n        kept.append(row.cpu())", "kept = []"
    ),
    "what is computed from a row": evaluation("for row in out:\n    kept.append(model(row).cpu())", "kept = []"),
    "a slice of its own in each iteration": evaluation(
        "for i in range(9):\n    kept.append(out[i : i + lengths[i]].cpu())", "kept = []"
    ),
    "rows on the host": evaluation("for row in out.cpu():\n    kept.append(row.cpu())", "kept = []"),
    "tensors of a list": evaluation("for part in model.parts(x):\n    kept.append(part.cpu())", "kept = []"),
    "all at once": evaluation("for b in out.argmax(1).tolist():\n    kept.append(b)", "kept = []"),
    "on the host": evaluation("best = out.argmax(1).cpu()\nfor b in best:\n    kept.append(b.item())", "kept = []"),
    "the class of all": evaluation("for i in range(9):\n    kept.append(i + out.argmax().item())", "kept = []"),
    "the class of each tensor of a list": evaluation(
        "for part in model.parts(x):\n    kept.append(part.argmax().item())", "kept = []"
    ),
    "the class of each row on the host": evaluation(
        "for row in out.cpu():\n    if row.max() > 0.9:\n        kept.append(row.argmax().item())", "kept = []"
    ),
    "a number of each row": evaluation("for p in out:\n    kept.append(p.max().item())", "kept = []"),
    "the loop writes the tensor": evaluation(
        "best = out.argmax(1)\nfor i in range(9):\n    best[i] = best[0] + 1\n    kept.append(best[i].item())",
        "kept = []",
    ),
    "the loop changes the tensor": evaluation(
        "best = out.argmax(1)\nfor i in range(9):\n    best.add_(1)\n    kept.append(best[i].item())", "kept = []"
    ),
    "each iteration waits for something else": evaluation(
        "best = out.argmax(1)\nfor i in range(3):\n    kept.append((best[i].item(), model(x[i:]).sum().item()))",
        "kept = []",
    ),
    "another value under the name": evaluation(
        "for b in out.argmax(1):\n    b = model(b)\n    kept.append(b.item())", "kept = []"
    ),
    "numbers of Python": evaluation(
        "for i in range(9):\n    kept.append(float(sizes[i]))", "kept, sizes = [], [1] * 9"
    ),
    "at log intervals": training("if step % 100 == 0:\n    print([v.item() for v in out.argmax(1)])"),
    "once, after the training": training("pass", after="return [v.item() for v in out.argmax(1)]"),
}


@pytest.mark.parametrize("code", ONE_BY_ONE.values(), ids=ONE_BY_ONE)
def test_a_tensor_that_is_read_number_by_number_is_found_once_and_by_this_rule_alone(code: str) -> None:
    assert [finding.code for finding in findings(code, *ALL)] == ["SYNC07"]


@pytest.mark.parametrize("code", ROW_BY_ROW.values(), ids=ROW_BY_ROW)
def test_a_tensor_that_is_copied_row_by_row_is_found_and_has_no_fix(code: str) -> None:
    [finding] = findings(code, *ALL)
    assert finding.code == "SYNC07"
    assert "once per row" in finding.message
    assert finding.fix is None


@pytest.mark.parametrize("code", COMPARED.values(), ids=COMPARED)
def test_a_tensor_that_is_compared_number_by_number_is_found_and_has_no_fix(code: str) -> None:
    [finding] = findings(code, *ALL)
    assert finding.code == "SYNC07"
    assert finding.fix is None


@pytest.mark.parametrize("code", SILENT.values(), ids=SILENT)
def test_what_cannot_be_one_list_is_silent(code: str) -> None:
    assert findings(code, "SYNC07") == []


def test_the_message_names_the_tensor() -> None:
    code = ONE_BY_ONE["by index"]
    [finding] = findings(code, "SYNC07")
    assert finding.line == line_of(code, "best[i].item()")
    assert "once per element of `best`" in finding.message
    assert "`best.tolist()`" in finding.message


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        ("best[i] == y[i]", "Compare the tensors as a whole"),
        ("best[i] == 3", "Copy `best` once"),
        ("best[i]", "Copy `b"),
    ],
)
def test_what_is_compared_is_not_made_a_list(asked: str, advice: str) -> None:
    code = ONE_BY_ONE["by index"].replace("kept.append(best[i].item())", f"if {asked}: kept.append(i)")
    [finding] = findings(code, "SYNC07")
    assert f". {advice}" in finding.message


# -- the fix ---------------------------------------------------------------------------------------------------------

REWRITES = {
    "a comprehension": "best = out.argmax(1)\nkept.extend([b.item() for b in best])",
    "a comprehension with a test": "kept.extend([b.item() for b in out.argmax(1) if b.item() > 0])",
    "an expression in a comprehension": "kept.extend([b.item() for b in out.max(1)[0] - 1])",
    "a set": "kept.append({int(b) for b in out.argmax(1)})",
    "a loop": "for b in out.argmax(1):\n    kept.append(b.item())",
    "real numbers": "for v in out.max(1)[0]:\n    kept.append((v.item(), float(v), int(v)))",
    "truths": "for v in out.argmax(1) == y:\n    kept.append(v.item())",
    "a column": "for v in torch.sigmoid(out.sum(1, keepdim=True)):\n    kept.append(v.item())",
    "with its number": "for i, b in enumerate(out.argmax(1)):\n    kept.append((i, b.item()))",
    "beside another": "for p, size in zip(out.argmax(1), [3, 4]):\n    kept.append(p.item() * size)",
    "by index": "best = out.argmax(1)\nfor i in range(len(y)):\n    kept.append(best[i].item())",
    "by index from behind": "best = out.max(1)[0]\nfor i in range(3):\n    kept.append(best[-1] + best[i].item())",
    "by index in a column": "best = out.max(1, keepdim=True)[0]\nfor i in range(3):\n    kept.append(best[i].item())",
    "beside the tensor": "best = out.argmax(1)\nfor i in range(3):\n    kept.append((best[i].item(), best.sum()))",
}


@pytest.mark.parametrize("body", REWRITES.values(), ids=REWRITES)
@pytest.mark.parametrize("loop", [training, evaluation], ids=["training", "evaluation"])
def test_the_list_holds_the_same_numbers(loop, body: str) -> None:  # type: ignore[no-untyped-def]
    code = loop(body, "kept = []", "return kept", head=TORCH_ONLY)
    new = fixed(code, "SYNC07", unsafe=False)
    assert ".tolist()" in new
    assert ".item()" not in new
    function = "train" if loop is training else "evaluate"
    assert repr(result_of(code, function, 3)) == repr(result_of(new, function, 3))
    assert findings(new, "SYNC07") == []


def test_no_list_of_the_one_where_each_iteration_waits_for_the_other() -> None:
    body = "a, b = out.argmax(1), {}\nfor i in range(3):\n    for j in range(1):\n"
    body += "        kept.append(int(a[i]))\n        kept.append(int(b[i][j]))"
    table = evaluation(body.format("out.view(3, -1)"), "kept = []")
    assert [finding.fix is None for finding in findings(table, "SYNC07")] == [False, False]
    unknown = evaluation(body.format("out.view(wanted(y))"), "kept = []")
    assert [finding.fix is None for finding in findings(unknown, "SYNC07")] == [True, True]


def test_an_integer_is_not_converted_again() -> None:
    code = evaluation(
        "for p, t in zip(out.argmax(1), y.long()):\n    kept.append((int(p), int(t), int(p)))", "kept = []"
    )
    new = fixed(code, "SYNC07", unsafe=False)
    assert "in zip(out.argmax(1).flatten().tolist(), y.long().flatten().tolist()):\n" in new
    assert "kept.append((p, t, p))" in new


def test_a_name_that_is_taken_is_left_alone() -> None:
    code = evaluation(
        "best = out.argmax(1)\nbest_list = 7\nfor i in range(3):\n    kept.append(best[i].item() + best_list)",
        "kept = []",
        "return kept",
        head=TORCH_ONLY,
    )
    new = fixed(code, "SYNC07", unsafe=False)
    assert "best_list_2 = best.flatten().tolist()" in new
    assert result_of(code, "evaluate", 2) == result_of(new, "evaluate", 2)


UNFIXED = {
    "the element is a tensor too": evaluation(
        "for b in out.max(1)[0]:\n    kept.append(b.item())\n    rest.append(b)", "kept, rest = [], []"
    ),
    "the last element is used behind": evaluation(
        "for b in out.max(1)[0]:\n    kept.append(b.item())\nrest.append(b)", "kept, rest = [], []"
    ),
    "beside what may be a tensor, too": evaluation(
        "for p, t in zip(out.argmax(1), wanted(y)):\n    table[int(p), int(t)] += 1", "table = np.zeros((3, 3))"
    ),
    "beside an element of what may be a tensor, too": evaluation(
        "best, truth = out.argmax(1), wanted(y)\nfor i in range(3):\n    kept.append((int(best[i]), int(truth[i])))",
        "kept = []",
    ),
    "another tensor is asked in each iteration": evaluation(
        "best = out.argmax(1)\nfor i in range(3):\n    kept.append(best[i].item())\n    assert out[i].sum() > 0",
        "kept = []",
    ),
    "the element has a name": evaluation(
        "best = out.argmax(1)\nfor i in range(3):\n    label = best[i]\n    kept.append(label.item())", "kept = []"
    ),
    "elements that a tensor is made of": evaluation(
        "best = out.argmax(1)\nnext_x = torch.LongTensor([best[i] for i in range(3)]).to(device)"
    ),
    "a table of unknown depth": evaluation(
        "for i in range(3):\n    for j in range(3):\n        kept.append(out[i, j].item())", "kept = []"
    ),
}


@pytest.mark.parametrize("code", UNFIXED.values(), ids=UNFIXED)
def test_no_fix_where_a_list_of_numbers_would_not_do(code: str) -> None:
    [finding] = findings(code, "SYNC07")
    assert finding.fix is None


@pytest.mark.parametrize("write", ["out.mul_(2)", "out[0] = 1"])
def test_the_fix_is_unsafe_where_the_loop_changes_a_tensor(write: str) -> None:
    code = evaluation(f"for b in out.max(1)[0]:\n    kept.append(b.item())\n    {write}", "kept = []")
    [finding] = findings(code, "SYNC07")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE


HALVING = "def halve(tensor):\n    tensor.data /= 2\n\n\n"


@pytest.mark.parametrize(
    "write",
    [
        "halve(scores)",
        "torch.distributed.all_reduce(scores)",
        "torch.clamp(scores, 0, 1, out=scores)",
        "view *= 2",
    ],
)
def test_elements_of_what_the_loop_writes_to_are_read_one_by_one(write: str) -> None:
    head = "scores = torch.sigmoid(out.flatten())\nview = scores.detach()\n"
    body = f"{head}for i in range(len(scores)):\n    kept.append(scores[i].item())\n    "
    assert findings(evaluation(body + write, "kept = []", head=TORCH_ONLY + HALVING), "SYNC07") == []
    [finding] = findings(evaluation(body + "model.note(scores)", "kept = []", head=TORCH_ONLY + HALVING), "SYNC07")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE


MASKED = evaluation("for i, end in enumerate({ends}):\n    out[i, {part}] = 0")


@pytest.mark.parametrize(
    ("ends", "part"),
    [("(out > 0).sum(1).tolist()", "end:"), ("(out > 0).sum(1)", "end"), ("targets[step]", "end:")],
    ids=["numbers of the host", "an index of a tensor of the device", "what is not known"],
)
def test_a_bound_or_an_index_that_nobody_waits_for_is_silent(ends: str, part: str) -> None:
    assert findings(MASKED.format(ends=ends, part=part), "SYNC07") == []


@pytest.mark.parametrize(
    ("other", "count"),
    [("best.cpu().numpy()[i]", 1), ("names[best.tolist()[i]]", 1), ("(out[i] * 2).norm().item()", 0)],
)
def test_a_copy_of_a_whole_batch_for_one_element_is_no_other_wait(other: str, count: int) -> None:
    """It can go as well, where what each iteration computes on the device cannot."""
    each = f"if not bool(hits[i].cpu()):\n        wrong.add(i)\n    show({other})"
    code = evaluation(
        f"best = out.argmax(1)\nhits = best == y\nfor i in range(9):\n    {each}", "wrong, names = set(), make()"
    )
    assert len(findings(code, "SYNC07")) == count


@pytest.mark.parametrize(("test", "is_fixed"), [("best", False), ("step > 1", True)])
def test_what_is_asked_whether_anything_is_in_it_may_be_a_list(test: str, is_fixed: bool) -> None:
    body = f"best = out.argmax(1)\nstep = 2\nif {test}:\n    kept.extend([b.item() for b in best])"
    assert (".tolist()" in fixed(evaluation(body, "kept = []"), "SYNC07")) is is_fixed


@pytest.mark.parametrize(("test", "count"), [('key == "size"', 0), ("key == 2", 1)])
def test_what_is_compared_with_a_text_is_no_tensor(test: str, count: int) -> None:
    code = evaluation(f"parts = model(x)\nfor key in parts:\n    if {test}:\n        kept.append(step)", "kept = []")
    assert len(findings(code, "SYNC07")) == count


COLLATED = """
    import torch
    from accelerate import Accelerator

    def collate(samples):
        images = torch.cat([sample["image"] for sample in samples], dim=0)
        drops = {drops}
        return {{"images": images, "drops": drops}}

    def train(data, model, opt):
        accelerator = Accelerator()
        loader = torch.utils.data.DataLoader(data, batch_size=4, collate_fn=collate)
        model, opt, loader = accelerator.prepare(model, opt, loader)
        for step, batch in enumerate(loader):
            kept = []
            for image, drop in zip(batch["images"], batch["drops"]):
                if drop == 1:
                    kept.append(torch.zeros_like(image))
                else:
                    kept.append(image)
            loss = model(torch.stack(kept)).mean()
            accelerator.backward(loss)
            opt.step()
            opt.zero_grad()
"""


@pytest.mark.parametrize(
    ("drops", "count"),
    [
        ('[sample["drop"] for sample in samples]', 0),
        ('torch.tensor([sample["drop"] for sample in samples])', 1),
        ("put_together(samples)", 1),
    ],
)
def test_a_list_that_is_collated_stays_one_on_the_device(drops: str, count: int) -> None:
    assert len(findings(COLLATED.format(drops=drops), "SYNC07")) == count


@pytest.mark.parametrize(
    ("drops", "count"), [('[sample["drop"] for sample in samples]', 0), ("torch.tensor(flags)", 1)]
)
@pytest.mark.parametrize("collate", ["lambda samples: collate(samples)", "collate"])
def test_the_loop_that_reads_a_name_says_what_is_collated(collate: str, drops: str, count: int) -> None:
    code = COLLATED.format(drops=drops).replace("collate_fn=collate", f"collate_fn={collate}")
    code = code.replace('batch["drops"])', "drops)").replace(
        "kept = []\n", 'kept, drops = [], None\n            drops = batch["drops"]\n'
    )
    assert len(findings(code, "SYNC07")) == count
