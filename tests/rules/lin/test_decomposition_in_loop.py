"""LIN02 and LIN03: decompositions and solvers matrix by matrix, and the recursions that look like them."""

from __future__ import annotations

import pytest
import torch

from tests.support import findings, fixed
from torchlint.finding import Applicability

HEAD = "import math\nimport torch\n\n\n"
ROW_RULES = ("VEC01", "VEC02", "VEC06", "VEC08", "LIN01", "LIN02", "LIN03")

REWRITES = {
    "an inverse": ("torch.stack([torch.linalg.inv(A[i]) for i in range(64)])", "torch.linalg.inv(A)", "LIN03"),
    "a determinant": ("torch.stack([torch.linalg.det(A[i]) for i in range(64)])", "torch.linalg.det(A)", "LIN02"),
    "singular values": (
        "torch.stack([torch.linalg.svdvals(A[i]) for i in range(64)])",
        "torch.linalg.svdvals(A)",
        "LIN02",
    ),
    "a least squares solution": (
        "torch.stack([torch.linalg.solve(A[i].mH @ A[i], A[i].mH @ B[i]) for i in range(64)])",
        "torch.linalg.solve(A.mH @ A, A.mH @ B)",
        "LIN03",
    ),
}


@pytest.mark.parametrize("name", REWRITES)
def test_one_by_one_becomes_one_call(name: str) -> None:
    loop, call, rule = REWRITES[name]
    made = "A = torch.randn(64, 4, 4)\nB = torch.randn(64, 4, 2)\n"
    code = f"{HEAD}{made}out = {loop}\n"
    (finding,) = findings(code, *ROW_RULES)
    assert finding.code == rule
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    new = fixed(code, rule)
    assert new == f"{HEAD}{made}out = {call}\n"
    before: dict[str, torch.Tensor] = {}
    after: dict[str, torch.Tensor] = {}
    torch.manual_seed(0)
    exec(code, before)
    torch.manual_seed(0)
    exec(new, after)
    torch.testing.assert_close(before["out"], after["out"], rtol=1e-3, atol=1e-3)


REPORTED = {
    "subspaces of covariances": (
        "LIN02",
        """\
def music(cov, sources):
    found = []
    for b in range(cov.shape[0]):
        values, vectors = torch.linalg.eigh(cov[b])
        noise = vectors[:, :-sources]
        found.append(noise @ noise.conj().T)
    return torch.stack(found)
""",
    ),
    "matrices of which nothing is known": (
        "LIN02",
        """\
def angles(matrices, count, sources):
    found = []
    for i in range(count):
        R = matrices[i]
        U, S, V = torch.svd(R)
        phi = torch.linalg.pinv(U[:-1, :sources]) @ U[1:, :sources]
        values, _ = torch.linalg.eig(phi)
        found.append(torch.asin(torch.angle(values) / math.pi))
    return torch.stack(found, dim=0)
""",
    ),
    "weights of precoders": (
        "LIN03",
        """\
def zero_forcing(H):
    W = torch.zeros_like(H)
    for b in range(H.shape[0]):
        channel = H[b]
        W[b] = channel.conj().T @ torch.inverse(channel @ channel.conj().T)
        W[b] = W[b] / torch.norm(W[b])
    return W
""",
    ),
    "a decomposition before work that has to stay": (
        "LIN02",
        """\
def peaks(covariances: torch.Tensor, search):
    found = []
    for b in range(covariances.size(0)):
        values, vectors = torch.linalg.eig(covariances[b])
        found.append(search.peaks(vectors))
    return found
""",
    ),
    "determinants that are added up": (
        "LIN02",
        """\
def f(A: torch.Tensor):
    total = 0.0
    for i in range(A.shape[0]):
        total = total + torch.logdet(A[i])
    return total
""",
    ),
}


@pytest.mark.parametrize("name", REPORTED)
def test_matrices_one_by_one_are_reported(name: str) -> None:
    code, loop = REPORTED[name]
    assert [finding.code for finding in findings(HEAD + loop, *ROW_RULES)] == [code]


KEPT = {
    "a filter": """\
def kalman(F_, Q, H, R, P, y: torch.Tensor):
    gains = []
    for t in range(y.size(0)):
        P = F_ @ P @ F_.T + Q
        K = P @ H.T @ torch.linalg.inv(H @ P @ H.T + R)
        P = P - K @ H @ P
        gains.append(K)
    return torch.stack(gains)
""",
    "layers of several sizes": """\
def similarity(student, teacher):
    losses = []
    for s, t in zip(student, teacher):
        losses.append((torch.linalg.svdvals(s) - torch.linalg.svdvals(t)).norm())
    return losses
""",
    "an iteration": """\
def f(A: torch.Tensor, x):
    for _ in range(64):
        x = torch.linalg.solve(A, x)
    return x
""",
    "blocks that grow": """\
def f(A: torch.Tensor):
    return torch.stack([torch.linalg.det(A[:k, :k]) for k in range(1, A.size(0))])
""",
}


@pytest.mark.parametrize("name", KEPT)
def test_what_depends_on_the_iteration_before_is_left_alone(name: str) -> None:
    assert findings(HEAD + KEPT[name], *ROW_RULES) == []
