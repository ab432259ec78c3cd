"""What `torchlint verify` says of each shipped example with all fixes, each in a folder of its own.

usage: python -m tests.evidence.examples OUTPUT

OUTPUT is a file in runtime_check/evidence; `python -m tests.test_readme` then brings the table of the README up to
date. Takes a few minutes. On a machine with a GPU the examples use it.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.evidence.real_code import ROOT

SCHEMA = "torchlint.evidence/1"
PROGRAMS = ("image_classifier.py", "mimo_channel.py", "gan.py")


def run(program: str) -> dict[str, Any]:
    """The invocation and the verdict of one example."""
    command = ["verify", "--output-format", "json", "--", "python", program]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "examples" / program, folder)
        words = [sys.executable, "-m", "torchlint", *command[:1], "--quiet", "--python", sys.executable, *command[1:]]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise SystemExit(f"{program}: {done.stderr}")
    return {
        "invocation": shlex.join(["torchlint", *command]),
        "folder": f"a folder that holds examples/{program} alone",
        "verdict": json.loads(done.stdout),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    output = parser.parse_args().output
    runs = [run(program) for program in PROGRAMS]
    environment = runs[0]["verdict"]["environment"]
    on_cpu = environment["device"] == "cpu"
    name, threads = environment["device_name"], environment["threads"]
    device = f"CPU: {name}, {threads} thread{'s' if threads > 1 else ''}" if on_cpu else name
    head = {"schema": SCHEMA, "device": device, **{key: environment[key] for key in ("driver", "torch", "date")}}
    output.write_text(json.dumps({**head, "runs": runs}, indent=2) + "\n")


if __name__ == "__main__":
    main()
