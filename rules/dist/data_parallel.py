from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class DataParallel(Rule):
    """A model runs on several GPUs through `nn.DataParallel`, from one process.

    ## What it does

    Finds `nn.DataParallel`, its functional form `nn.parallel.data_parallel` and classes derived from it, under whatever
    name they were imported. The class of `torch_geometric`, which takes lists of graphs, is another one. Code that
    tells its user on the spot to prefer `DistributedDataParallel`, and tests, are left alone.

    ## Why is this bad

    In every step one Python process scatters the batch, copies the whole model to every GPU, runs the replicas in
    threads that share one interpreter lock, and gathers all outputs and gradients on the first GPU, whose memory fills
    up first. `DistributedDataParallel` keeps one process and one copy of the model per GPU and exchanges gradients
    while the backward pass still runs. How much that gains depends on model and machine: walkerning/aw_nas#17 reports
    18 instead of 24 s per epoch; the performance guide of Hugging Face transformers measured 101 s against 110 s over
    NVLink, but 131 s once the GPUs had to exchange gradients without it.

    ## Example

    ```python
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).cuda()
    model = nn.DataParallel(model)
    print(model(torch.randn(256, 64)).mean())
    ```

    ## Use instead

    ```python
    import os

    import torch
    from torch import distributed, nn
    from torch.nn.parallel import DistributedDataParallel

    distributed.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).cuda(rank)
    model = DistributedDataParallel(model, device_ids=[rank])
    print(model(torch.randn(64, 64, device="cuda")).mean())
    ```

    A training script also needs, in this order:

    * a launcher: `torchrun --nproc-per-node=gpu train.py`, `init_process_group`, `set_device(local_rank)`
    * the batch size of one GPU in each process, if it was the one of all
    * `DistributedSampler` for the training loader, and its `set_epoch(epoch)` at the beginning of every epoch
    * `SyncBatchNorm.convert_sync_batchnorm` if batch statistics are to cover all GPUs; `DataParallel` never did that
    * no `loss.mean()` over a vector of per-GPU losses: every process has its own scalar
    * logging, checkpoints and downloads on rank 0 only, and metrics reduced over the ranks
    * the prefix `module.` in checkpoints: both wrappers add it, so `model.module.state_dict()` stays

    ## Fix safety

    There is no fix: the launch command, the data and the checkpoints change with it.

    ## Measured effect

    No evidence recorded yet.

    ## References

    * <https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html>
    * <https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-nn-ddp-instead>
    * <https://docs.pytorch.org/tutorials/beginner/ddp_series_multigpu.html>
    """

    code = "DIST01"
    name = "data-parallel"
    triggers = ("DataParallel", "data_parallel")
    in_tests = False

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.dist.replication import replications

        for replication in replications(model):
            yield Report(replication.node, _MESSAGES[replication.form].format(replication.wrapped))


_MIGRATE = (
    "Prefer `DistributedDataParallel`, one process per GPU: start with torchrun, give the loader a "
    "`DistributedSampler`, keep the per-GPU batch size, save and log on rank 0 (`torchlint rule DIST01` has the list)."
)
_MESSAGES = {
    "wrapper": "Every step copies {} to all GPUs and gathers its outputs on one, from a single process. " + _MIGRATE,
    "function": "Every call copies {} to all GPUs and gathers its outputs on one, from a single process. " + _MIGRATE,
    "subclass": "`{}` derives from `nn.DataParallel`, which copies the model to all GPUs in every step, from a single "
    "process. " + _MIGRATE,
    "single": "`nn.DataParallel` over a single device does no work in parallel: it only adds `module.` to the names "
    "in the checkpoints of {}. Remove it.",
    "reached": "`nn.DataParallel` over a single device does no work in parallel. Use {} itself, and take out every "
    "`.module` that reaches through the wrapper.",
    "named": "Nothing runs the `nn.DataParallel` around {}: it only takes the names of a checkpoint that was saved "
    "from such a wrapper. `torch.nn.modules.utils.consume_prefix_in_state_dict_if_present` takes `module.` off them, "
    "and the model loads it without a wrapper.",
}
