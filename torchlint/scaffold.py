"""The files of a new rule: one that works and passes its test, to be changed into another one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from string import Template

_TEMPLATES = Path(__file__).with_name("templates")


def files_of_rule(code: str, name: str) -> dict[Path, str]:
    """The module of a rule, with its page and fixer, and the test beside it."""
    module = name.replace("-", "_")
    class_name = "".join(word.capitalize() for word in name.split("-"))
    values = {"code": code, "name": name, "module": module, "class_name": class_name}
    return {
        Path(f"{module}.py"): _filled("rule.py", values),
        Path(f"test_{module}.py"): _filled("test.py", values),
    }


def files_of_package(code: str, name: str, distribution: str) -> dict[Path, str]:
    """A package that brings the rule to whoever installs it."""
    package = re.sub(r"\W+", "_", distribution)
    about = _filled("pyproject.toml", {"distribution": distribution, "package": package})
    rule = {Path(package) / path: text for path, text in files_of_rule(code, name).items()}
    return {Path("pyproject.toml"): about, Path(package) / "__init__.py": "", **rule}


def _filled(template: str, values: Mapping[str, str]) -> str:
    return Template((_TEMPLATES / f"{template}.txt").read_text(encoding="utf-8")).substitute(values)
