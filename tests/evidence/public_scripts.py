#!/usr/bin/env python3
"""Hand training scripts of public repositories, as they are, to `torchlint verify`, with all fixes, safe and unsafe.

usage: python -m tests.evidence.public_scripts CHECKOUTS [--only SCRIPT ...] [--blocks N]

CHECKOUTS holds a folder OWNER__NAME with each repository at its commit, which is only read. Every script runs in a
copy, with small synthetic data where it needs any; torchvision is a stand-in with random pictures. What `verify` says
goes to `public_scripts.json` and `public_scripts.md` beside this file; records of other scripts stay in them. On a
machine with a GPU the scripts use it, as they would without torchlint. Exit code 1 if `verify` failed on a script.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.evidence.public_script import SCRIPTS, Script
from tests.evidence.real_code import ROOT, blob, environment
from tests.evidence.verdict_table import table

HERE = Path(__file__).parent
RECORDS = HERE / "public_scripts.json"
TABLE = HERE / "public_scripts.md"
STAND_INS = HERE / "stand_ins"

Record = dict[str, Any]


def verdict_of(script: Script, checkout: Path, blocks: int) -> Record:
    """What `torchlint verify` prints as JSON."""
    options = ["--root", str(checkout), "--steps", str(script.steps), "--blocks", str(blocks), "--quiet"]
    command = [sys.executable, "-m", "torchlint", "verify", *options, "--output-format", "json", "--", *script.command]
    variables = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(STAND_INS))),
        "MPLBACKEND": "Agg",
    }
    done = subprocess.run(command, cwd=checkout / script.folder, env=variables, capture_output=True, text=True)
    if not done.stdout:
        raise RuntimeError(f"{script.name}: {done.stderr}")
    verdict: Record = json.loads(done.stdout)
    return verdict


def measure(script: Script, checkouts: Path, blocks: int) -> Record:
    source = checkouts / script.checkout
    with tempfile.TemporaryDirectory() as scratch:
        checkout = Path(scratch).resolve() / script.checkout
        shutil.copytree(source, checkout, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        script.data(checkout)
        verdict = verdict_of(script, checkout, blocks)
    ran = [fix for fix in verdict["fixes"] if fix["status"] != "not run"]
    return {
        "repository": script.repository,
        "commit": script.commit,
        "path": script.path,
        "blob": blob(source / script.path),
        **environment("python -m tests.evidence.public_scripts CHECKOUTS"),
        "fixes_not_run": len(verdict["fixes"]) - len(ran),
        "verdict": {**verdict, "fixes": ran},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--only", nargs="*", choices=[script.name for script in SCRIPTS])
    parser.add_argument("--blocks", type=int, default=5)
    options = parser.parse_args()
    records: dict[str, Record] = json.loads(RECORDS.read_text()) if RECORDS.exists() else {}
    failed = False
    for script in SCRIPTS:
        if options.only and script.name not in options.only:
            continue
        record = measure(script, options.checkouts.resolve(), options.blocks)
        overall = record["verdict"]["overall"]
        print(script.name, overall, *record["verdict"]["reasons"], sep="  ", flush=True)
        failed |= overall == "error"
        records[script.name] = record
        RECORDS.write_text(json.dumps(dict(sorted(records.items())), indent=1) + "\n")
        TABLE.write_text(table(records))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
