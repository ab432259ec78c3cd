"""Files as code hosts know them: by their path from the top of the repository, in whatever folder torchlint runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from torchlint.files.git import Repository


@dataclass(frozen=True)
class SourceRoot:
    """The folder from which a format counts paths."""

    folder: str

    @classmethod
    def of_working_directory(cls) -> SourceRoot:
        """The top of the repository around the working directory; without one, the working directory."""
        here = os.getcwd()
        repository = Repository.around(here)
        return cls(here if repository is None else repository.root)

    def path(self, path: str) -> str:
        """A path as torchlint shows it, from here, with slashes; absolute for a file that lies elsewhere."""
        absolute = Path(os.path.abspath(path))
        return (absolute.relative_to(self.folder) if absolute.is_relative_to(self.folder) else absolute).as_posix()
