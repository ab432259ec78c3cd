"""Selection of rules, settings files, and messages that name what was meant."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from torchlint.config import ConfigError, Selection, Settings, check_selectors, find_code
from torchlint.finding import Severity
from torchlint.rule import all_rules
from torchlint.settings_file import CommandLine, Configuration, read_settings

EVERY = frozenset(all_rules())
FILE = Path("src/model.py")


def rules(settings: Settings, path: Path = FILE) -> set[str]:
    return {code for code in settings.codes(path) if code in EVERY}


def family(name: str) -> set[str]:
    return {code for code in EVERY if code.startswith(name)}


SELECTIONS = [
    pytest.param(Selection(), set(EVERY), id="all by default"),
    pytest.param(Selection(("MEM01",)), {"MEM01"}, id="a code"),
    pytest.param(Selection(("append-graph-tensor",)), {"MEM01"}, id="a name"),
    pytest.param(Selection(("MEM",)), family("MEM"), id="a family"),
    pytest.param(Selection(("MEM0",)), {code for code in EVERY if code.startswith("MEM0")}, id="a prefix"),
    pytest.param(Selection(ignore=("MEM",)), EVERY - family("MEM"), id="ignored family"),
    pytest.param(Selection(("MEM01",), ignore=("MEM",)), {"MEM01"}, id="the code is more specific"),
    pytest.param(Selection(("MEM",), ignore=("MEM01",)), family("MEM") - {"MEM01"}, id="so is the ignored code"),
    pytest.param(Selection(("MEM01",), ignore=("MEM01",)), set(), id="ignored on a tie"),
    pytest.param(Selection(("MEM01",), ("SYNC01",)), {"MEM01", "SYNC01"}, id="extended"),
    pytest.param(Selection(("ALL",), ignore=("SYNC",)), EVERY - family("SYNC"), id="all but a family"),
]


@pytest.mark.parametrize(("selection", "expected"), SELECTIONS)
def test_selections(selection: Selection, expected: set[str]) -> None:
    assert rules(Settings(selection=selection)) == expected


def test_the_command_line_beats_the_file() -> None:
    settings = Settings(selection=Selection(ignore=("MEM01",)), command_line=Selection(("MEM01",)))
    assert rules(settings) == {"MEM01"}
    settings = Settings(selection=Selection(("MEM",)), command_line=Selection(ignore=("MEM01",)))
    assert rules(settings) == family("MEM") - {"MEM01"}


def test_rules_are_off_where_their_remedy_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_rules()["MEM01"], "needs_torch", "2.4")
    assert "MEM01" not in rules(Settings(target_torch="2.3.1"))
    assert "MEM01" in rules(Settings(target_torch="2.4"))
    assert "MEM01" in rules(Settings())


def test_rules_are_off_where_torch_does_by_itself_what_they_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_rules()["MEM01"], "needless_since", "2.6")
    assert "MEM01" in rules(Settings(target_torch="2.5.1"))
    assert "MEM01" not in rules(Settings(target_torch="2.6"))
    assert "MEM01" in rules(Settings())


UNKNOWN = [
    pytest.param("TRAIN4", "TRAIN04", id="a digit short"),
    pytest.param("apend-graph-tensor", "append-graph-tensor", id="a letter short"),
    pytest.param("SYN01", "SYNC01", id="a family short"),
    pytest.param("mem99", "MEM", id="no such number"),
]


@pytest.mark.parametrize(("given", "meant"), UNKNOWN)
def test_an_unknown_rule_names_the_nearest(given: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"no rule `{given}`; did you mean `{meant}"):
        check_selectors([given], "--select")


def test_rules_are_found_by_code_and_name_in_any_case() -> None:
    assert find_code("mem01") == find_code("append-graph-tensor") == "MEM01"
    assert find_code("syntax-error") == "LINT01"
    with pytest.raises(ConfigError, match=r"no rule `xyzzy`; `torchlint rule --all` shows all"):
        find_code("xyzzy")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))
    return path


WHOLE = """
    [tool.torchlint]
    select = ["MEM", "SYNC"]
    extend-select = ["TRAIN01"]
    ignore = ["MEM02"]
    exclude = ["old"]
    extend-exclude = ["new/*.py"]
    respect-gitignore = false
    force-exclude = true
    unsafe-fixes = true
    target-torch = "2.4"
    [tool.torchlint.per-file-ignores]
    "tests/**" = ["ALL"]
    [tool.torchlint.severity]
    MEM01 = "error"
    [[tool.torchlint.overrides]]
    files = ["research/**"]
    ignore = ["SYNC"]
    severity = { MEM = "info" }
"""


def test_every_key_arrives(project: Path) -> None:
    settings = read_settings(write(project / "pyproject.toml", WHOLE))
    assert settings is not None
    assert rules(settings, project / "a.py") == (family("MEM") - {"MEM02"}) | family("SYNC") | {"TRAIN01"}
    assert rules(settings, project / "tests" / "deep" / "a.py") == set()
    assert rules(settings, project / "research" / "a.py") == (family("MEM") - {"MEM02"}) | {"TRAIN01"}
    assert settings.severity_of("MEM01", project / "a.py") is Severity.ERROR
    assert settings.severity_of("MEM05", project / "research" / "a.py") is Severity.INFO
    assert settings.is_excluded(project / "old" / "x" / "a.py")
    assert settings.is_excluded(project / "new" / "a.py")
    assert not settings.is_excluded(project / "build" / "a.py")
    assert (settings.respect_gitignore, settings.force_exclude, settings.unsafe_fixes) == (False, True, True)
    assert settings.root == project


BAD = [
    pytest.param('selct = ["MEM"]', "unknown key `selct`.*did you mean `select`", id="unknown key"),
    pytest.param('select = ["MEN01"]', "no rule `MEN01`; did you mean `MEM01`", id="unknown rule"),
    pytest.param('select = "MEM01"', "`select` must be a list of strings", id="no list"),
    pytest.param("select = [1]", "`select` must be a list of strings", id="numbers"),
    pytest.param('unsafe-fixes = "yes"', "`unsafe-fixes` must be true or false", id="no boolean"),
    pytest.param('target-torch = "new"', "must be a version", id="no version"),
    pytest.param('severity = { MEM01 = "fatal" }', "no severity `fatal`", id="unknown severity"),
    pytest.param('per-file-ignores = ["a"]', "must be a table", id="no table"),
    pytest.param('overrides = [{ ignore = ["MEM"] }]', "needs `files`", id="override without files"),
    pytest.param('overrides = [{ files = ["a"], ignor = [] }]', "did you mean `ignore`", id="override with a typo"),
]


@pytest.mark.parametrize(("line", "message"), BAD)
def test_a_bad_setting_says_what_is_meant_and_where(line: str, message: str, project: Path) -> None:
    file = write(project / "torchlint.toml", line)
    with pytest.raises(ConfigError, match=message) as caught:
        read_settings(file)
    assert str(file) in str(caught.value)


def test_the_nearest_file_wins_and_nothing_is_merged(project: Path) -> None:
    write(project / "pyproject.toml", '[tool.torchlint]\nselect = ["MEM01"]\nunsafe-fixes = true\n')
    write(project / "inner" / "torchlint.toml", 'select = ["SYNC01"]\n')
    write(project / "inner" / "deep" / "pyproject.toml", '[project]\nname = "x"\n')
    configuration = Configuration()
    assert rules(configuration.for_path(project / "a.py")) == {"MEM01"}
    inner = configuration.for_path(project / "inner" / "deep" / "a.py")
    assert rules(inner) == {"SYNC01"}
    assert not inner.unsafe_fixes


def test_options_lie_over_every_file(project: Path) -> None:
    write(project / "torchlint.toml", 'select = ["MEM01"]\n')
    options = CommandLine(Selection(("SYNC01",)), unsafe_fixes=True)
    settings = Configuration(options).for_path(project / "a" / "b.py")
    assert rules(settings) == {"SYNC01"}
    assert settings.unsafe_fixes
    assert dict(settings.origins) == {"select": "command line", "unsafe-fixes": "command line"}


def test_isolated_reads_nothing_and_config_reads_one_file(project: Path) -> None:
    write(project / "torchlint.toml", 'select = ["MEM01"]\n')
    other = write(project / "other" / "lint.toml", 'select = ["SYNC01"]\n')
    assert rules(Configuration(isolated=True).for_path(project / "a.py")) == EVERY
    assert rules(Configuration(explicit=other).for_path(project / "a.py")) == {"SYNC01"}


def test_files_that_cannot_be_read(project: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_settings(project / "gone.toml")
    with pytest.raises(ConfigError, match="not valid TOML"):
        read_settings(write(project / "torchlint.toml", "select = ["))
    with pytest.raises(ConfigError, match="not valid TOML"):
        read_settings(write(project / "pyproject.toml", "[tool.torchlint\n"))
    assert read_settings(write(project / "pyproject.toml", "name = {{ template }}\n")) is None


class TestExtend:
    def settings(self, folder: Path, **files: str) -> Settings:
        for name, text in files.items():
            path = folder / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".toml").write_text(text)
        found = read_settings(folder / "sub" / "torchlint.toml")
        assert found is not None
        return found

    def test_keys_of_the_file_take_the_place_of_those_it_extends(self, tmp_path: Path) -> None:
        settings = self.settings(
            tmp_path,
            base='select = ["MEM", "SYNC"]\nignore = ["MEM01"]\nunsafe-fixes = true\ntarget-torch = "2.4"\n',
            sub__torchlint='extend = "../base.toml"\nignore = ["SYNC"]\nunsafe-fixes = false\n',
        )
        assert rules(settings) == family("MEM")
        assert (settings.unsafe_fixes, settings.target_torch) == (False, "2.4")
        origins = dict(settings.origins)
        assert origins["select"].endswith("base.toml")
        assert origins["ignore"].endswith("torchlint.toml")

    def test_globs_are_relative_to_the_file_that_has_them(self, tmp_path: Path) -> None:
        settings = self.settings(
            tmp_path,
            base='[per-file-ignores]\n"sub/tests/*" = ["MEM01"]\n"*_old.py" = ["MEM01"]\n'
            '[[overrides]]\nfiles = ["tests/"]\nignore = ["MEM01"]\n',
            sub__torchlint='extend = "../base.toml"\nselect = ["MEM01"]\nextend-exclude = ["gen/*.py", "!gen/a.py"]\n',
        )
        assert settings.root == tmp_path / "sub"
        assert rules(settings, tmp_path / "sub/a.py") == {"MEM01"}
        assert rules(settings, tmp_path / "sub/tests/a.py") == set()
        assert rules(settings, tmp_path / "sub/x/a_old.py") == set()
        assert settings.is_excluded(tmp_path / "sub/gen/b.py")
        assert not settings.is_excluded(tmp_path / "sub/gen/a.py")
        assert not settings.is_excluded(tmp_path / "gen/b.py")
        command_line = CommandLine(per_file_ignores=(("x/*", ("MEM01",)),))
        assert rules(command_line.over(settings), tmp_path / "sub/x/a.py") == set()
        assert rules(command_line.over(settings), tmp_path / "x/a.py") == {"MEM01"}

    def test_a_folder_with_the_signs_of_globs_in_its_name(self, tmp_path: Path) -> None:
        settings = self.settings(
            tmp_path / "a[b]*",
            base="",
            sub__torchlint='extend = "../base.toml"\nselect = ["MEM01"]\n[per-file-ignores]\n"x.py" = ["MEM01"]\n',
        )
        assert rules(settings, tmp_path / "a[b]*/sub/x.py") == set()

    def test_a_chain_of_files(self, tmp_path: Path) -> None:
        settings = self.settings(
            tmp_path,
            one='select = ["MEM"]\nbaseline = "b.json"\n',
            two='extend = "one.toml"\nignore = ["MEM01"]\n',
            sub__torchlint='extend = "../two.toml"\n',
        )
        assert rules(settings) == family("MEM") - {"MEM01"}
        assert settings.baseline == tmp_path / "b.json"

    @pytest.mark.parametrize(
        ("extend", "message"),
        [
            pytest.param("gone.toml", "No such file or directory", id="missing"),
            pytest.param("torchlint.toml", "comes back to itself", id="itself"),
            pytest.param("../loop.toml", "comes back to itself", id="a circle"),
            pytest.param("../bad.toml", "unknown key `selct`", id="a mistake"),
            pytest.param("../pyproject.toml", "no section", id="no section"),
        ],
    )
    def test_what_cannot_be_extended(self, extend: str, message: str, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=message):
            self.settings(
                tmp_path,
                loop='extend = "sub/torchlint.toml"\n',
                bad="selct = []\n",
                pyproject="[tool.other]\n",
                sub__torchlint=f'extend = "{extend}"\n',
            )


def test_rules_that_matter_on_a_gpu_only_are_off_where_the_target_is_a_cpu(tmp_path: Path) -> None:
    found = rules(Settings(target_device="cpu"))
    assert not found & (family("SYNC") | family("XFER") | {"DATA02", "MEM06", "TIME01"})
    assert found >= family("LIN") | family("TRAIN") | {"MEM01", "DATA01"}
    assert rules(Settings(target_device="rocm")) == rules(Settings(target_device="cuda")) == EVERY
    file = tmp_path / "torchlint.toml"
    file.write_text('target-device = "tpu"\n')
    with pytest.raises(ConfigError, match="no device `tpu`; there are cuda, rocm, cpu"):
        read_settings(file)
