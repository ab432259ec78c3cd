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
    "a mean that is kept": evaluation("shares.append(out.argmax(1).eq(y).cpu().numpy().mean())", "shares = []"),
    "a mean that is printed": training("print(step, np.mean(out.detach().cpu().numpy()))"),
    "a mean under a name": training("share = out.argmax(1).cpu().numpy().mean()\nprint(share)"),
    "an accuracy by another library": training(
        "p = out.argmax(1).cpu()\nscore += accuracy_score(targets[step], p)", "score = 0", "return score"
    ),
}

SILENT = {
    "predictions are collected": evaluation("kept.append(out.cpu())", "kept = []", "return torch.cat(kept)"),
    "predictions are collected as arrays": evaluation("kept.extend(out.argmax(1).cpu().numpy())", "kept = []"),
    "predictions are collected as lists": evaluation(
        "kept += out.argmax(1).cpu().tolist()", "kept = []", "return kept"
    ),
    "predictions grow by cat": evaluation("kept = torch.cat([kept, out.cpu()])", "kept = torch.zeros(0, 3)"),
    "predictions are written to rows": evaluation("kept[step] = out.cpu()", "kept = make()", "return kept"),
    "a metric object on the host": evaluation("metric.update(out.cpu(), y.cpu())", "metric = make()"),
    "images are saved": training("save_image(out.detach().cpu(), 'out.png')"),
    "an area under a curve": evaluation("total += roc_auc_score(y.cpu(), out.cpu())", "total = 0"),
    "the loader's batch": """
        import torch

        def count(loader, model):
            for x, y in torch.utils.data.DataLoader(loader):
                total = y.numpy().sum()
                print(total, model(x.cuda()))
    """,
    "lengths that packing wants on the host": training(
        "packed = nn.utils.rnn.pack_padded_sequence(x, y.cpu())\nmodel(packed)"
    ),
    "an environment acts on it": """
        import torch

        def play(agent, envs, optimizer):
            observation = envs.reset()
            for step in range(1000):
                action = agent(torch.tensor(observation).cuda())
                observation, reward, done, info = envs.step(action.cpu().numpy())
                print(reward.mean())
    """,
    "behind a log interval": training("if step % 100 == 0:\n    print(out.detach().cpu().numpy().mean())"),
    "a loop over its elements": evaluation("for p in out.argmax(1).tolist():\n    print(p)"),
    "a decision": evaluation("if out.cpu().numpy().max() > 5:\n    break"),
    "after the loop": evaluation("kept.append(out)", "kept = []", "return torch.cat(kept).cpu().numpy().mean()"),
    "it goes back to the device": training("model(out.detach().cpu().clamp(0).to(device))"),
}


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
