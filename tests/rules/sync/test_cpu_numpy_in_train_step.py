"""SYNC03: whole tensors that are copied to the host in every step, for a number."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import evaluation, line_of, training
from tests.support import findings

REDUCED_ON_THE_HOST = {
    "a count by numpy": training(
        "p = out.cpu().data.max(1)[1].numpy()\ncorrect += np.sum(p == step)", "correct = 0", "return correct"
    ),
    "a count by torch on the host": evaluation("correct += out.argmax(1).eq(y).cpu().sum()", "correct = 0"),
    "an array that is copied and cut off, in named sums": evaluation(
        "raw = out.cpu().numpy()\nhits = copy.deepcopy(raw)\nhits[hits < 0.5] = 0\nsums['all'] += hits.sum(0)",
        "import copy\nsums = {'all': 0, 'some': 0}",
        "return sums['all'].mean()",
    ),
    "a mean that is kept": evaluation("shares.append(out.argmax(1).eq(y).cpu().numpy().mean())", "shares = []"),
    "a mean that is printed": training("print(step, np.mean(out.detach().cpu().numpy()))"),
    "a mean under a name": training("share = out.argmax(1).cpu().numpy().mean()\nprint(share)"),
    "pictures of the first batch": evaluation(
        "shown = out.cpu().numpy()\nif step == 0 and rank == 0:\n    for j in range(3):\n        show(shown[j])"
    ),
    "an accuracy by another library": training(
        "p = out.argmax(1).cpu()\nscore += accuracy_score(targets[step], p)", "score = 0", "return score"
    ),
}

SILENT = {
    "predictions of several views, added up for each batch": evaluation(
        """
        mask = 0
        mask += model(x).cpu().numpy()[:, 0]
        turned = model(x.flip([-1])).cpu().numpy()[:, 0]
        mask += turned[:, ::-1]
        kept[step] = resize(mask / 2)
        """,
        "kept = np.zeros((9, 4, 4))",
        "return kept",
    ),
    "another array that is filled where it says so": evaluation(
        "marks = make()\nmarks[out.cpu().numpy() > 0.5] = 1\nkept[step] = resize(marks)", "kept = []"
    ),
    "predictions of several networks in a dict": evaluation(
        "kept['all'] += out.cpu().numpy()", "kept = {'all': make()}", "return kept"
    ),
    "lengths that a loss on the device wants on the host": training(
        "sizes = torch.sum(out > 0, 1)\nkept.append(nn.functional.ctc_loss(out, y, sizes.cpu(), [3]).detach())",
        "kept = []",
    ),
    "a wait under no name": evaluation("out.cpu()"),
    "a wait under the name of what nobody wants": evaluation("_ = out.cpu().numpy()"),
    "predictions are collected": evaluation("kept.append(out.cpu())", "kept = []", "return torch.cat(kept)"),
    "predictions are collected as arrays": evaluation(
        "kept.extend(out.argmax(1).cpu().numpy())", "kept = []", "return kept"
    ),
    "predictions are collected as lists": evaluation(
        "kept += out.argmax(1).cpu().tolist()", "kept = []", "return kept"
    ),
    "predictions are collected one by one": evaluation(
        "p = out.cpu().numpy()\nfor k, name in names:\n    kept[name].append(p[k].item())",
        "kept = make()",
        "return kept",
    ),
    "predictions grow by cat": evaluation("kept = torch.cat([kept, out.cpu()])", "kept = torch.zeros(0, 3)"),
    "predictions of several networks are added up": evaluation(
        "if kept is None:\n    kept = model(x).cpu()\nelse:\n    kept += model(x).cpu()", "kept = None", "return kept"
    ),
    "predictions are written to rows": evaluation("kept[step] = out.cpu()", "kept = make()", "return kept"),
    "a metric object on the host": evaluation("metric.update(out.cpu(), targets[step])", "metric = make()"),
    "pictures of every batch, by one process": evaluation(
        "shown = out.cpu().numpy()\nif rank == 0:\n    for j in range(3):\n        show(shown[j])"
    ),
    "images are saved": training("save_image(out.detach().cpu(), 'out.png')"),
    "an area under a curve": evaluation("total += roc_auc_score(targets[step], out.cpu())", "total = 0"),
    "the loader's batch": """
        import torch

        def count(loader, model):
            for x, y in torch.utils.data.DataLoader(loader):
                total = y.numpy().sum()
                print(total, model(x.cuda()))
    """,
    "lengths that packing wants on the host": training(
        "packed = nn.utils.rnn.pack_padded_sequence(x, lengths_of(x).cpu())\nmodel(packed)"
    ),
    "an environment acts on it": """
        import torch
        from torch import nn

        def play(agent: nn.Module, envs):
            observation = envs.reset()
            for step in range(1000):
                action = agent(torch.tensor(observation).cuda())
                observation, reward, done, info = envs.step(action.cpu().numpy())
                print(reward.mean(), action.cpu().numpy().mean())
    """,
    "behind a log interval": training("if step % 100 == 0:\n    print(out.detach().cpu().numpy().mean())"),
    "a loop over its elements": evaluation("for p in out.argmax(1).tolist():\n    print(p)"),
    "a decision": evaluation("if out.cpu().numpy().max() > 5:\n    break"),
    "after the loop": evaluation("kept.append(out)", "kept = []", "return torch.cat(kept).cpu().numpy().mean()"),
    "it goes back to the device from what may need it": training("model(solve(out.detach().cpu()).to(device))"),
}


METRIC = """import numpy as np
import torch
from torch.utils.data import DataLoader


class Confusion:
    def __init__(self, classes):
        self.classes = classes
        self.matrix = np.zeros((classes, classes))
        self.seen = []

    def _counted(self, truth, guess):
        mask = (truth >= 0) & (truth < self.classes)
        return np.bincount(self.classes * truth[mask].astype(int) + guess[mask]).reshape(self.classes, self.classes)

    def add(self, truth, guess):
        assert truth.shape == guess.shape
        self.matrix += self._counted(truth, guess)

    def add_each(self, truths, guesses):
        for truth, guess in zip(truths, guesses):
            self.matrix += self._counted(truth.flatten(), guess.flatten())

    def keep(self, truth, guess):
        self.seen.append(guess)

    def draw(self, truth, guess):
        plot(guess)

    def judge(self, truth, guess):
        if guess.mean() > 3:
            self.matrix += 1


def evaluate(model, data, device):
    confusion = Confusion(9)
    for x, y in DataLoader(data):
        out = model(x.to(device))
        guess = out.argmax(1).cpu().numpy()
        {use}
    return confusion
"""

MEASURED = {
    "a metric of the file": METRIC.replace("{use}", "confusion.add(y.numpy(), guess)"),
    "a metric that goes through the samples": METRIC.replace("{use}", "confusion.add_each(y.numpy(), guess)"),
    "what a function of the file returns": METRIC.replace("{use}", "confusion.matrix += confusion._counted(y, guess)"),
    "one metric after the other": evaluation(
        "for metric in metrics:\n    totals[metric] += metric(out, x).cpu().numpy().mean()", "totals = make()"
    ),
}

MEASURED["a score of two tensors in a loop over files"] = """\
import numpy
import torch


def compare(pairs, features, device):
    scores = []
    for one, other in pairs:
        first, second = features[one].to(device), features[other].to(device)
        distance = torch.cdist(first, second).cpu().numpy()
        scores.append(-numpy.mean(distance))
    return scores
"""

NOT_MEASURED = {
    "a function that collects": METRIC.replace("{use}", "confusion.keep(y.numpy(), guess)"),
    "a function that draws": METRIC.replace("{use}", "confusion.draw(y.numpy(), guess)"),
    "a function that decides": METRIC.replace("{use}", "confusion.judge(y.numpy(), guess)"),
    "rows that are filled in": evaluation("kept[step : step + 4] += out.cpu().numpy()", "kept = np.zeros((99, 3))"),
    "a detector that hands out boxes, and a picture if asked": """
        import torch

        class Detector:
            def __init__(self, net):
                self.net = net.cuda()

            def __call__(self, image, save=False):
                boxes = self.net(image.cuda())
                found = boxes[:, :4].cpu().numpy()
                return found if not save else (found, draw(image))

        def demo(net, images):
            detector = Detector(net)
            for image in images:
                found = detector(image)
                show(found)
    """,
    "rows of a table on the device": evaluation("kept = table[out.argmax(1).cpu()]\nprint(kept.sum())"),
}

BROUGHT_BACK = {
    "by a function of torch": evaluation("kept.append(torch.squeeze(x).cpu().numpy())", "kept = []", "return kept"),
    "a name that the loop gives anew": evaluation(
        "x = clipped(x.view(-1).cpu())\nkept.append(measured(x))", "kept = []"
    ),
    "a list of the batch alone": evaluation("shown += [draw(x.cpu()), draw(step)]", "shown = []", "return shown"),
    "until a batch of a kind turns up": evaluation("save(x.cpu())\nif total == 7:\n    break", "total = count()"),
    "labels for a metric on the host": evaluation("metric.update(out.cpu(), y.detach().cpu().numpy())"),
    "labels that are collected": evaluation("truths.extend(y.tolist())", "truths = []", "return truths"),
    "lengths that packing wants on the host": training("packed = nn.utils.rnn.pack_padded_sequence(x, y.cpu())"),
    "to('cpu')": evaluation("truths.append(y.to('cpu'))", "truths = []", "return truths"),
    "the first of a batch": evaluation("imwrite(step, x[0].squeeze().cpu())"),
    "under another name": training("flat = y.view(-1)\nlabels = flat.long()\nsave(labels.cpu())"),
    "behind a check for a GPU": """
        import torch
        from torch.utils.data import DataLoader

        def evaluate(model, data, cuda, evaluator):
            for image, target in DataLoader(data):
                if cuda:
                    image, target = image.cuda(), target.cuda()
                out = model(image)
                evaluator.add(target.cpu().numpy(), out.argmax(1))
    """,
    "a batch that is moved as a whole": """
        import torch

        def evaluate(model, loader, device, evaluator):
            for batch in loader:
                batch = tuple(part.to(device) for part in batch)
                inputs = {"ids": batch[0], "labels": batch[1]}
                inputs["mask"] = batch[2]
                with torch.no_grad():
                    out = model(**inputs)
                evaluator.add(out, inputs["labels"].detach().cpu().numpy())
    """,
    "a tensor that the step makes of an array": evaluation(
        "z = torch.from_numpy(arrays[step])\nz = z.to(device)\nsave(model(z), z.cpu())"
    ),
    "an attribute of a batch of graphs": """
        import torch
        from torch_geometric.loader import DataLoader

        def evaluate(model, data, device, truths):
            for batch in DataLoader(data):
                batch = batch.to(device)
                model(batch)
                truths.append(batch.y.view(-1).cpu())
    """,
    "a helper that moves": """
        import torch

        def to_gpu(x):
            return x.cuda(non_blocking=True) if torch.cuda.is_available() else x

        def evaluate(model, loader, evaluator):
            with torch.no_grad():
                for image, target in loader:
                    target = to_gpu(target)
                    out = model(to_gpu(image))
                    evaluator.add(out, target.cpu().numpy())
    """,
}

NO_WAY_BACK = {
    "a picture of the batch beside the result": evaluation(
        "shown += [draw(x.cpu()), draw(out.cpu())]", "shown = []", "return shown"
    ),
    "a batch that is joined with the result": evaluation("save(torch.cat([x.cpu(), out.cpu()]))"),
    "a few batches before the training": evaluation("save(x.cpu())\nif step == 7:\n    break"),
    "labels that the device changes": evaluation(
        "y[y > 2] = 0\ntruths.append(y.cpu())", "truths = []", "return truths"
    ),
    "labels that a method changes": evaluation("y.clamp_(0)\ntruths.append(y.cpu())", "truths = []", "return truths"),
    "an attribute that the loop sets": """
        import torch
        from torch_geometric.loader import DataLoader

        def evaluate(model, data, device, found):
            for batch in DataLoader(data):
                batch = batch.to(device)
                batch.y = model(batch)
                found.append(batch.y.cpu())
    """,
    "labels that the device changes through data": evaluation("y.data[y > 2] = 0\nsave(y.cpu())"),
    "something computed from the batch": evaluation("truths.append((x * 2).cpu())", "truths = []", "return truths"),
    "a function of torch of what is computed": evaluation(
        "kept.append(torch.squeeze(x * 2).cpu())", "kept = []", "return kept"
    ),
    "a name that is given something else": evaluation("x = out\nkept.append(x.cpu())", "kept = []", "return kept"),
    "a few batches only": evaluation("if step < 4:\n    shown.append(x.cpu())", "shown = []", "return shown"),
    "behind a log interval": training("if step % 100 == 0:\n    save(x.cpu())"),
    "data that stays on the device": """
        import torch

        def train(model, data, targets, criterion, steps, keep):
            data, targets = data.cuda(), targets.cuda()
            for step in range(steps):
                x, y = data[step], targets[step]
                criterion(model(x), y).backward()
                keep(y.cpu())
    """,
    "places that code out of sight finds on the device": """
        import torch
        from elsewhere import chosen

        def evaluate(model, loader, device, found):
            for x, boxes in loader:
                boxes = boxes.to(device)
                kept = chosen(boxes, model(x.to(device)))
                found.append(boxes[kept].cpu())
                best = chosen(boxes, model(x.to(device)))[0]
                found.append(boxes[best].cpu())
    """,
    "a helper that computes": """
        import torch

        def prepared(x):
            return x.cuda() / 255

        def evaluate(model, loader, keep):
            for image, target in loader:
                image = prepared(image)
                keep(model(image), image.cpu())
    """,
}


@pytest.mark.parametrize("code", MEASURED.values(), ids=MEASURED)
def test_an_array_is_followed_into_the_functions_that_measure_it(code: str) -> None:
    [finding] = findings(code, "SYNC03")
    assert finding.line == line_of(code, ".cpu().numpy()")


@pytest.mark.parametrize("code", NOT_MEASURED.values(), ids=NOT_MEASURED)
def test_an_array_that_a_function_needs_is_silent(code: str) -> None:
    assert findings(code, "SYNC03") == []


@pytest.mark.parametrize("code", BROUGHT_BACK.values(), ids=BROUGHT_BACK)
def test_a_batch_that_comes_back_as_it_went_is_found(code: str) -> None:
    [finding] = findings(code, "SYNC03")
    assert "copies back to the host" in finding.message
    assert finding.fix is None


@pytest.mark.parametrize("code", NO_WAY_BACK.values(), ids=NO_WAY_BACK)
def test_what_the_host_does_not_have_is_no_round_trip(code: str) -> None:
    assert findings(code, "SYNC03") == []


@pytest.mark.parametrize("code", REDUCED_ON_THE_HOST.values(), ids=REDUCED_ON_THE_HOST)
def test_a_tensor_that_is_reduced_on_the_host_is_found_once_and_by_this_rule_alone(code: str) -> None:
    assert [finding.code for finding in findings(code, "SYNC01", "SYNC03", "SYNC06")] == ["SYNC03"]


@pytest.mark.parametrize("code", SILENT.values(), ids=SILENT)
def test_a_copy_that_something_else_needs_is_silent(code: str) -> None:
    assert findings(code, "SYNC03") == []


def test_the_first_copy_of_a_chain_is_pointed_at_and_there_is_no_fix() -> None:
    code = REDUCED_ON_THE_HOST["a count by numpy"]
    [finding] = findings(code, "SYNC03")
    assert finding.line == line_of(code, "out.cpu()")
    assert "`out.cpu()` copies a whole tensor to the host in every training step" in finding.message
    assert finding.fix is None


BOARD = """
class Board:
    def __init__(self, every):
        self.every, self.steps, self.sums = every, 0, {"loss": 0.0, "count": 0}

    def eval(self):
        self.steps = 0

    def __call__(self, losses):
        self.sums["loss"] += losses.sum().item()
        self.sums["count"] += losses.size(0)
        self.steps += 1
        if self.steps % self.every == 0:
            losses = self.sums["loss"] / self.sums["count"]
            print(losses)
            more()


"""


SHOWING = "board(F.cross_entropy(out, y, reduction='none').cpu())"


@pytest.mark.parametrize("more", ["pass", "self.last = losses", "self.draw(losses)"])
def test_an_object_that_is_called_with_a_tensor_does_with_it_what_its_class_says(more: str) -> None:
    code = BOARD.replace("more()", more) + training(SHOWING, "board = Board(9)")
    assert len(findings(code, "SYNC03")) == 1


def test_a_tensor_that_such_an_object_draws_is_needed_on_the_host() -> None:
    drawing = BOARD.replace("self.steps += 1", "self.draw(losses)")
    assert findings(drawing + training(SHOWING, "board = Board(9)"), "SYNC03") == []


def test_a_copy_that_gets_a_name_and_is_never_asked_can_go() -> None:
    [found] = findings(evaluation("guess = np.argmax(out.cpu().numpy(), 1)"), "SYNC03")
    assert found.message.endswith("and nothing uses the copy. Leave it out.")
    assert findings(evaluation("guess = np.exp(out.cpu().numpy())", "guess = 0", "return guess"), "SYNC03") == []


SAVED = """
    import numpy as np
    import torch

    def spectrogram(model, x):
        return model(x).cpu().numpy()

    @torch.no_grad()
    def extract(loader, model: torch.nn.Module, debug=False):
        model.eval()
        for x in loader:
            found = spectrogram(model, x.cuda())
            for i in range(len(x)):
                part = found[i].T
                {saved}
                if debug:
                    print(part)
"""


@pytest.mark.parametrize(
    ("saved", "count"),
    [("np.save(f'{i}.npy', part)", 0), ("np.savez(f'{i}.npz', part, x=1)", 0), ("np.abs(part)", 1)],
)
def test_a_file_that_is_written_of_every_batch_needs_the_copy(saved: str, count: int) -> None:
    assert len(findings(SAVED.replace("{saved}", saved), "SYNC03")) == count


@pytest.mark.parametrize(
    ("then", "count"),
    [("del out", 1), ("kept.append(out)\ndel out", 0), ("wait(out)", 0)],
)
def test_a_copy_in_the_place_of_the_tensor_that_is_only_deleted_can_go(then: str, count: int) -> None:
    code = evaluation(f"kept.append(out.topk(5)[1])\nout = out.cpu().numpy()\n{then}", "kept = []", "return kept")
    found = findings(code, "SYNC03")
    assert [finding.message.endswith("nothing uses the copy. Leave it out.") for finding in found] == [True] * count


@pytest.mark.parametrize(
    ("made", "count"), [("torch.squeeze(y, 1)", 1), ("torch.unsqueeze(y, -1)", 1), ("torch.add(y, 1)", 0)]
)
def test_a_batch_that_only_loses_an_axis_on_the_device_is_the_batch(made: str, count: int) -> None:
    code = evaluation(f"labels = {made}\nboard.add(labels.cpu().numpy(), step)", "board = make()")
    assert len(findings(code, "SYNC03")) == count


@pytest.mark.parametrize(
    ("taken", "count"),
    [
        ("labels, other = y.view(-1), net(y)", 1),
        ("labels, other = net(y), y.view(-1)", 0),
        ("labels, other = net(y)", 0),
    ],
)
def test_a_batch_among_other_things_that_are_unpacked_is_the_batch(taken: str, count: int) -> None:
    code = evaluation(f"{taken}\nboard.add(labels.cpu().numpy(), step)", "board, net = make(), make()")
    assert len(findings(code, "SYNC03")) == count


@pytest.mark.parametrize(
    ("filled", "count"),
    [
        ("pass", 1),
        ("torch.distributed.send(labels, 1)", 1),
        ("torch.distributed.all_gather_into_tensor(labels, y)", 0),
        ("torch.distributed.all_reduce(labels)", 0),
        ("torch.add(y, 1, out=labels)", 0),
    ],
)
def test_what_other_processes_send_did_not_come_from_the_host(filled: str, count: int) -> None:
    code = evaluation(f"labels = torch.empty(9).cuda()\n{filled}\nboard.add(labels.cpu().numpy())", "board = make()")
    assert len(findings(code, "SYNC03")) == count


@pytest.mark.parametrize(
    ("behind", "count"),
    [
        ("if show_plots:\n    paint(flow)\nelse:\n    write(flow)", 0),
        ("if show_plots:\n    paint(flow)", 1),
    ],
)
def test_a_copy_that_both_branches_need_is_needed_in_every_iteration(behind: str, count: int) -> None:
    code = evaluation(f"flow = out[0].cpu()\n{behind}", "from drawing import paint, write, show_plots")
    assert len(findings(code, "SYNC03")) == count
