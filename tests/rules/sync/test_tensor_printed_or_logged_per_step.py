"""SYNC04: tensors that are turned into text, or handed to a logger, in every step."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import TORCH_ONLY, evaluation, line_of, result_of, training
from tests.support import findings, fixed
from torchlint.finding import Applicability

ALL = ("SYNC01", "SYNC02", "SYNC03", "SYNC04", "SYNC05", "SYNC06", "SYNC07", "SYNC09")

SHOWN = {
    "printed": training("print(step, loss)"),
    "in an f-string": training("print(f'{step}: {loss:.4f}')"),
    "by format": training("print('{}: {:.4f}'.format(step, loss))"),
    "by percent": training("print('%d: %.4f' % (step, loss))"),
    "in a text with a name": training("line = f'{loss:.4f}'\nprint(step, line)"),
    "joined texts": training("print('loss ' + str(loss))"),
    "in a progress bar": training("bar.set_postfix(loss=loss)", "bar = Bar()"),
    "in a progress bar by a dict": training("bar.set_postfix({'loss': loss})", "bar = Bar()"),
    "in the text of a progress bar": training("bar.set_description(f'loss {loss:.3f}')", "bar = Bar()"),
    "to tensorboard": training("writer.add_scalar('loss', loss, step)", "writer = make_writer()"),
    "to wandb": training("wandb.log({'loss': loss, 'step': step})"),
    "a norm of the gradients": training(
        "norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)\nprint(f'{norm:.3f}')"
    ),
    "in an option": training("if long_lines:\n    print(step, loss)", "long_lines = ask()"),
    "in evaluation": evaluation("print(step, loss)"),
    "in a text that an attribute gets": training("bar.suffix = f'loss {loss:.3f}'\nbar.next()", "bar = Bar()"),
    "in a text that grows": training(
        "line = f'{step}'\nline += ' {:.3f}'.format(loss)\nbar.suffix = line", "bar = Bar()"
    ),
}

SILENT = {
    "before the program ends": training(
        "if not ok(loss):\n    print('no number: %s' % str(loss))\n    raise SystemExit(1)"
    ),
    "before it is left by a call": training("if not ok(loss):\n    print('no number: %s' % str(loss))\n    exit(1)"),
    "a name that holds another text at intervals": training(
        "text = f'{step}'\nprint(text)\nif step % 100 == 0:\n    text = f'{loss}'\n    print(text)"
    ),
    "a text that is made at intervals": training("if step % 100 == 0:\n    text = f'{loss}'\nprint(text)", "text = ''"),
    "a number of a dict with a tensor": evaluation(
        "found['sum'] += loss\nfound['last'] = 2.0 * step\nprint(found['last'])",
        "found = {'last': 0, 'sum': 0, 'n': 0}",
    ),
    "at log intervals": training("if step % 100 == 0:\n    print(step, loss)"),
    "in the first steps": training("if step == 0:\n    print(loss)"),
    "what is no content": training("print(loss.shape, loss.device, out.size(0), len(out))"),
    "what torch refuses": training("print('{:.4f}'.format(loss.data[0]))"),
    "what torch refuses of a loss that nobody knows": training("board.add_scalar('loss', loss.data[0], step)").replace(
        "loss = ", "loss = weigh(model(x)) + "
    ),
    "numbers of Python": training("print(step, time.time())"),
    "the names of losses": training("for name, value in losses(model(x)).items():\n    print(name + ':')"),
    "a text that only a failure asks for": training("assert step < 99, f'{step}: {loss}'"),
    "a text of an exception": training("if step > 99:\n    raise ValueError(f'{loss}')"),
    "the name of a file": training("save(out, f'{loss:.3f}.png')"),
    "a key": training("kept[f'{loss:.1f}'] = step", "kept = {}"),
    "a text that goes into a file": training("file.write(f'{loss:.3f}')", "file = open('losses')"),
    "a text that is shown at intervals": training(
        "line = f'{loss}'\nif step % 9 == 0:\n    bar.text = line", "bar = Bar()"
    ),
    "on the host": training("print(out.detach().cpu())"),
    "lazily": training("log.debug('%s', loss)", "log = make_log()"),
    "once after the loop": training("pass", after="print(loss)"),
    "in a report of trouble": training("if torch.isnan(loss):\n    print('NaN', loss)\n    break"),
    "a warning of what should not happen": training(
        "if len(out) > limit:\n    log.warning('too many: {:.4f} {}'.format(loss, str(out)))",
        "limit, log = 3, make_log()",
    ),
    "a model of its own in each iteration": """
        import torch
        from torch import nn

        def test_sizes(device):
            for size in range(1, 4):
                layer = nn.Linear(size, 3).to(device)
                out = layer(torch.randn(2, size).to(device))
                print(size, out)
    """,
    "another framework": """
        import mxnet as mx
        from mxnet import autograd

        def train(model, trainer, batches):
            for x, y in batches:
                with autograd.record():
                    loss = model(x.as_in_context(mx.gpu()), y)
                loss.backward()
                trainer.step(1)
                print("{:.4f}".format(loss.asnumpy()[0]))
    """,
    "the logger of Lightning": """
        import pytorch_lightning as pl
        from torch.nn import functional as F

        class Net(pl.LightningModule):
            def training_step(self, batch, index):
                loss = F.mse_loss(self(batch[0]), batch[1])
                self.log("loss", loss)
                return loss
    """,
}


@pytest.mark.parametrize("code", SHOWN.values(), ids=SHOWN)
def test_a_tensor_that_is_shown_in_every_step_is_found_once_and_by_this_rule_alone(code: str) -> None:
    assert [finding.code for finding in findings(code, *ALL)] == ["SYNC04"]


@pytest.mark.parametrize("code", SILENT.values(), ids=SILENT)
def test_what_is_rare_or_reads_nothing_is_silent(code: str) -> None:
    assert findings(code, "SYNC04") == []


def test_a_statement_that_reads_a_number_besides_is_one_finding() -> None:
    [finding] = findings(training("print(f'{out} {loss.item():.3f}')"), *ALL)
    assert finding.code == "SYNC01"


def test_the_message_names_what_is_shown() -> None:
    code = SHOWN["in an f-string"]
    [finding] = findings(code, "SYNC04")
    assert finding.line == line_of(code, "{loss:.4f}")
    assert finding.message.startswith("To show `loss`, the host waits for the device in every training step.")


def test_the_finding_stands_where_the_text_is_made() -> None:
    code = training("line = f'{step}'\nline = line + f' {loss:.3f}'\nprint(line)")
    [finding] = findings(code, "SYNC04")
    assert finding.line == line_of(code, "loss:.3f")


# -- the fix ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loop", ["enumerate(loader)", "range(len(loader))"])
def test_the_fix_shows_every_hundredth_step_and_changes_nothing_else(
    loop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = training(
        "print(f'{loss:.4f}',\n      out.shape)  # progress\nkept.append(step)", "kept = []", "return kept", TORCH_ONLY
    )
    if loop.startswith("range"):
        code = code.replace(
            "for step, (x, y) in enumerate(loader):", f"for step in {loop}:\n        x, y = loader[step]"
        )
    [finding] = findings(code, "SYNC04")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    new = fixed(code, "SYNC04")
    assert findings(new, "SYNC04") == []
    assert result_of(code, "train", 3) == [0, 1, 2]
    lines = capsys.readouterr().out.splitlines()
    assert result_of(new, "train", 3) == [0, 1, 2]
    assert capsys.readouterr().out.splitlines() == lines[:1]


@pytest.mark.parametrize(
    ("loop", "is_applied"),
    [
        ("step, x in enumerate(pairs)", False),
        ("step, x in enumerate(zip(xs, ys))", False),
        ("step in range(args.rounds)", False),
        ("step in range(20)", False),
        ("step in range(5000)", True),
        ("step in range(rounds)", True),
    ],
)
def test_of_a_loop_that_may_have_few_rounds_the_interval_is_only_shown(loop: str, is_applied: bool) -> None:
    code = training("print(loss)").replace("step, (x, y) in enumerate(loader)", loop)
    [finding] = findings("rounds = 2000\n" + code.replace("model(x)", "model(step)"), "SYNC04")
    assert finding.fix is not None
    assert (finding.fix.applicability is Applicability.UNSAFE) is is_applied


UNFIXED = {
    "no counter": training("print(loss)").replace("for step, (x, y) in enumerate(loader)", "for x, y in loader"),
    "another value of the counter": training("step = 7\nprint(step, loss)"),
    "a progress line": training("print(f'{step}: {loss:.4f}', end='\\r')"),
    "a progress line that is written": training("import sys; sys.stdout.write('\\r%d: %f' % (step, loss))").replace(
        "; ", "\n        "
    ),
    "a text of another statement": training("line = f'{loss:.4f}'\nprint(step, line)"),
    "the result is used": training("line = print(loss)"),
    "beside another statement": training("print(loss); seen = 1"),
    "steps of their own": training("print(loss)").replace(
        "step, (x, y) in enumerate(loader)", "step in range(0, len(loader), 32)"
    ),
}


@pytest.mark.parametrize("code", UNFIXED.values(), ids=UNFIXED)
def test_no_fix_where_nothing_counts_the_steps(code: str) -> None:
    assert all(finding.fix is None for finding in findings(code, "SYNC04"))


def test_neighbours_are_shown_in_the_same_steps() -> None:
    code = training("print(loss)\nprint(out.mean())\nkept.append(step)\nprint(out.sum())", "kept = []")
    new = fixed(code, "SYNC04")
    assert new.count("if step % 100 == 0:") == 2
    assert "print(loss)\n            print(out.mean())\n        kept.append(step)" in new


@pytest.mark.parametrize(
    ("count", "shown", "test"),
    [
        pytest.param("n += 1", "n", "n % 100 == 0", id="a count of all steps"),
        pytest.param("n = n + 1", "n", "n % 100 == 0", id="a count of all steps, written out"),
        pytest.param("n += len(x)", "n", "step % 100 == 0", id="a count of samples"),
        pytest.param("n += 1", "step", "step % 100 == 0", id="the steps of an epoch"),
        pytest.param("n += 1", "7 * n", "step % 100 == 0", id="no variable"),
    ],
)
def test_steps_are_counted_as_tensorboard_is_told(count: str, shown: str, test: str) -> None:
    code = training(f"{count}\nwriter.add_scalar('loss', loss, {shown})", "writer, n = make_writer(), 0")
    (finding,) = findings(code, "SYNC04")
    assert finding.fix is not None
    assert f"if {test}:" in "".join(edit.text for edit in finding.fix.edits)
    assert fixed(code, "SYNC04") == code


def test_a_progress_bar_does_not_stand_still() -> None:
    code = training("bar.set_postfix(loss=loss)\nprint(loss)", "bar = make_bar()")
    assert all(finding.fix is None for finding in findings(code, "SYNC04"))


def test_a_variable_that_nobody_reads_counts_nothing() -> None:
    code = training("print(loss)").replace("for step,", "for _,")
    assert len(findings(code, "SYNC04")) == 1
    assert fixed(code, "SYNC04") == code


def test_what_stands_under_an_interval_of_one_step_gets_no_other() -> None:
    code = training("if step % 1 == 0:\n    print(f'{loss:.4f}')")
    assert findings(code, "SYNC04")
    assert fixed(code, "SYNC04") == code


@pytest.mark.parametrize(("interval", "is_fixed"), [("step % 5", True), ("step % every", False)])
def test_which_interval_is_meant_is_for_the_author_to_say_where_there_is_one(interval: str, is_fixed: bool) -> None:
    code = training(f"print(f'{{loss:.4f}}')\nif {interval} == 0:\n    save(model)", "every = 50")
    assert all((finding.fix is not None) is is_fixed for finding in findings(code, "SYNC04"))


def test_no_fix_where_each_step_reads_the_device_anyway() -> None:
    code = training("print(f'{loss:.4f}')\nseen = out.max().item()\nassert seen")
    assert all(finding.fix is None for finding in findings(code, "SYNC04"))
    gated = code.replace("    seen = out.max().item()", "    if step % 5 == 0:\n            seen = out.max().item()")
    assert all(finding.fix is not None for finding in findings(gated, "SYNC04"))


def test_no_fix_where_each_step_asserts_something_of_the_device() -> None:
    code = training("print(out.max())\nassert out.max() < 100")
    assert all(finding.fix is None for finding in findings(code, "SYNC04"))


def test_no_fix_where_the_first_element_of_the_loss_is_read_anyway() -> None:
    code = training("print(f'{loss:.4f}')\nseen = loss.data[0]\nassert seen")
    assert all(finding.fix is None for finding in findings(code, "SYNC04"))


@pytest.mark.parametrize(
    ("test", "is_fixed"), [("loss < best", False), ("step > 5", True), ("step > 5 and loss < best", False)]
)
def test_no_fix_where_each_step_asks_the_device_anyway(test: str, is_fixed: bool) -> None:
    code = training(f"print(f'{{loss:.4f}}')\nif {test}:\n    best = loss", "best = torch.inf")
    [finding] = findings(code, "SYNC04")
    assert (finding.fix is not None) is is_fixed


def test_a_trainer_counts_its_steps_itself() -> None:
    code = """
        import torch

        class Trainer:
            def __init__(self, net, writer):
                self.net, self.writer, self.steps = net.cuda(), writer, 0
                self.optimizer = torch.optim.SGD(net.parameters(), 0.1)

            def update(self, draw):
                for _ in range(9):
                    loss = self.net(draw().cuda()).mean()
                    self.writer.add_scalar("loss", loss, global_step=self.steps)
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                    self.steps += 1
        """
    (finding,) = findings(code, "SYNC04")
    assert finding.fix is not None
    assert "if self.steps % 100 == 0:" in finding.fix.edits[0].text


@pytest.mark.parametrize(("test", "count"), [("seen == 1", 0), ("seen > 0", 0), ("seen == 9", 1)])
def test_a_loop_that_leaves_before_its_second_batch_only_looks_at_the_first(test: str, count: int) -> None:
    code = """
        import torch

        def show(loader):
            net = torch.nn.Linear(2, 2).cuda()
            seen = 0
            for x, y in torch.utils.data.DataLoader(loader):
                if {}:
                    break
                out = net(x.cuda()).argmax(1)
                print(out)
                seen += 1
        """
    assert len(findings(code.format(test), "SYNC04")) == count


@pytest.mark.parametrize(("told", "count"), [("self.log_every", 0), ("self.steps", 1)])
def test_a_logger_that_is_told_how_often_reads_at_intervals(told: str, count: int) -> None:
    body = f"self.logger.add_histogram('answers', torch.sigmoid(out), {told})"
    assert len(findings(training(body), "SYNC04")) == count


@pytest.mark.parametrize(("backward", "is_fixed"), [("loss.backward()", True), ("pass", False)])
def test_what_an_evaluation_shows_of_each_batch_is_its_result(backward: str, is_fixed: bool) -> None:
    code = f"""
        import torch

        def run(net, loader, log):
            net.cuda()
            for step, (x, y) in enumerate(loader):
                out = net(x.cuda())
                loss = torch.nn.functional.cross_entropy(out, y.cuda())
                log.info(f"batch {{step}}: {{loss}}, {{out}}")
                {backward}
        """
    (finding,) = findings(code, "SYNC04")
    assert (finding.fix is not None) is is_fixed


@pytest.mark.parametrize(("every", "is_fixed"), [("total % args.save_every", False), ("total > args.steps", True)])
def test_a_loop_that_has_an_interval_of_its_own(every: str, is_fixed: bool) -> None:
    code = f"""
        import torch

        def run(net, loader, args, total):
            net.cuda()
            for step, (x, y) in enumerate(loader):
                loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda())
                loss.backward()
                print(loss)
                total += 1
                if {every}:
                    torch.save(net.state_dict(), "net.pt")
        """
    (finding,) = findings(code, "SYNC04")
    assert (finding.fix is not None) is is_fixed
