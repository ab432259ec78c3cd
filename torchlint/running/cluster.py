"""Work spread over the machines of a Dask cluster, behind the interface of `concurrent.futures`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from typing import TypeVar

from torchlint.config import ConfigError
from torchlint.extras import how_to_install

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
_PATIENCE = "10s"


def spread(address: str, work: Callable[[_Task], _Result], tasks: Sequence[_Task]) -> Iterator[_Result]:
    """What `work` makes of the tasks, as it is ready. What a lost worker had is done again by another.

    Raises ConfigError where there is no cluster at the address.
    """
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise ConfigError(f"--executor dask=ADDRESS needs Dask: {how_to_install('dask')}") from error
    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConfigError(f"--executor: no Dask scheduler answers at {address}") from error
    with client, client.get_executor(pure=False) as pool:
        for future in as_completed([pool.submit(work, task) for task in tasks]):
            yield future.result()
