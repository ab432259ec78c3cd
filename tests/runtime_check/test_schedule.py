from __future__ import annotations

from torchlint.runtime_check.schedule import Side, blocks


def test_every_block_holds_every_side_once() -> None:
    assert all(sorted(block) == sorted(Side) for block in blocks(20, seed=0))


def test_orders_vary_and_repeat_with_the_seed() -> None:
    assert len(set(blocks(40, seed=0))) == 6
    assert blocks(10, seed=3) == blocks(10, seed=3) != blocks(10, seed=4)
