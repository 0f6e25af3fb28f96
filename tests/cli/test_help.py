"""Help, the man page, the generated documents, and completion: all made from the one table of commands."""

import re
import subprocess

import pytest

from support.cli import ROOT

COMMANDS = [
    "init", "doctor", "discover", "plan", "apply", "run", "runs", "checkpoints", "status", "compact", "reconcile", "backfill", "audit",
    "state show", "state reset", "state rebaseline", "connector list", "debug failpoints", "debug errors", "completion",
    "version", "help",
]  # fmt: skip


def test_overview_lists_every_command(run):
    out = run("help").ok().stdout
    listed = re.findall(r"^  ([a-z]+(?: [a-z]+)?) {2,}", out.split("commands:")[1].split("global options:")[0], re.M)
    assert listed == COMMANDS
    assert run("--help").ok().stdout == out


def test_without_a_command_the_overview_goes_to_stderr(run):
    result = run().exits(2)
    assert result.stdout == ""
    assert result.stderr == run("help").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(run, command):
    out = run(*command.split(), "--help").ok().stdout
    assert out.startswith(f"openetl {command}: ")
    assert f"usage: openetl {command} [options]" in out
    assert re.search(rf"^  .*openetl {command}\b", out, re.M), "no example"
    assert "--workspace NAME" in out
    assert run("help", *command.split()).ok().stdout == out


def test_help_of_a_group(run):
    assert run("state", "--help").ok().stdout == (
        "usage: openetl state COMMAND [options]\n"
        "\n"
        "commands:\n"
        "  state show            saved positions: the lease, the last commit a stream, reset marks\n"
        "  state reset           lets the next run read streams from the start\n"
        "  state rebaseline      reads cdc streams anew when their place in the log is lost\n"
    )


def test_man_page_is_the_committed_one(run):
    assert run("help", "--man").ok().stdout == (ROOT / "docs/openetl.1").read_text(), (
        "openetl help --man > docs/openetl.1"
    )


def test_errors_page_is_the_committed_one(run):
    assert run("debug", "errors", "--markdown").ok().stdout == (ROOT / "docs/errors.md").read_text(), (
        "openetl debug errors --markdown > docs/errors.md"
    )


def test_every_code_is_in_the_errors_page(run):
    codes = re.findall(r"^CODE\((\w+), (\d+)", (ROOT / "src/base/codes.def").read_text(), re.M)
    listed = {item["code"]: item["exit"] for item in run("debug", "errors", "-o", "json").ok().json["errors"]}
    assert listed == {word: int(code) for word, code in codes}


def test_failpoints_are_listed(run):
    names = re.findall(r"^FAILPOINT\((\w+)", (ROOT / "src/base/failpoints.def").read_text(), re.M)
    assert [item["name"] for item in run("debug", "failpoints", "-o", "json").ok().json["failpoints"]] == names
    text = run("debug", "failpoints").ok().stdout
    assert all(re.search(rf"^{name}  ", text, re.M) for name in names)


def test_every_command_is_documented():
    page = (ROOT / "docs/cli.md").read_text()
    for command in COMMANDS:
        assert f"openetl {command}" in page


def test_version(run):
    out = run("version").ok().stdout
    assert re.fullmatch(
        r"openetl 0\.1\.0\n"
        r"  libpq    \d+\.\d+\n  sqlite   3\.\d+\.\d+\n  duckdb   v1\.\d+\.\d+\n  libyaml  0\.\d+\.\d+\n  jansson  2\.\d+.*\n",
        out,
    )
    assert run("--version").ok().stdout == out
    assert run("version", "--output", "json").ok().json["version"] == "0.1.0"


# ---- completion ----


def complete(run, openetl, tmp_path, line):
    """What bash offers at the end of `line`."""
    script = tmp_path / "completion.bash"
    script.write_text(run("completion", "bash").ok().stdout)
    program = f"""
source {script}
COMP_LINE={line!r}; COMP_POINT=${{#COMP_LINE}}
# bash cuts words at '=' too, as COMP_WORDBREAKS says
read -ra parts <<<"${{COMP_LINE//=/ = }}"; COMP_WORDS=("${{parts[@]}}")
[[ $COMP_LINE == *' ' ]] && COMP_WORDS+=("")
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
compopt() {{ :; }}
_openetl
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=10)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    "line, offered",
    [
        ("openetl pl", {"plan"}),
        ("openetl r", {"reconcile", "run", "runs"}),
        ("openetl state ", {"show", "reset", "rebaseline"}),
        ("openetl state re", {"rebaseline", "reset"}),
        ("openetl --workspace w debug ", {"failpoints", "errors"}),
        ("openetl plan --fi", {"--file"}),
        ("openetl plan --output ", {"text", "json"}),
        ("openetl plan --output=j", {"json"}),
        ("openetl --log-format js", {"json"}),
        ("openetl state reset shop --st", {"--state", "--stream"}),
        ("openetl completion ", {"bash", "zsh", "fish"}),
        ("openetl plan -f ./sh", {"./shop.yaml"}),
        ("openetl run --file ./sh", {"./shop.yaml"}),
    ],
)
def test_bash_completion(run, openetl, tmp_path, line, offered):
    (tmp_path / "shop.yaml").touch()
    assert set(complete(run, openetl, tmp_path, line)) == offered


def test_bash_completion_offers_every_command(run, openetl, tmp_path):
    assert set(complete(run, openetl, tmp_path, "openetl ")) == {name.split()[0] for name in COMMANDS}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_completions_name_every_command_and_option(run, shell):
    script = run("completion", shell).ok().stdout
    for word in {word for name in COMMANDS for word in name.split()}:
        assert re.search(rf"\b{word}\b", script)
    assert "log-format" in script and "workspace" in script


def test_completion_of_an_unknown_shell(run):
    assert run("completion", "tcsh").exits(2).stderr == (
        'openetl: USAGE: there is no completion for "tcsh"\n  fix: openetl completion bash|zsh|fish\n'
    )
