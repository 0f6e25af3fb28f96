"""The command line's own errors: exit 2, exact words, the nearest valid name."""

import pytest


@pytest.mark.parametrize(
    "args, message, fix",
    [
        (["plna"], 'there is no command "plna"', "did you mean openetl plan? openetl help lists the commands"),
        (["frobnicate"], 'there is no command "frobnicate"', "openetl help lists the commands"),
        (["state", "shwo"], 'there is no command "state shwo"', "did you mean openetl state show? openetl help lists the commands"),
        (["state"], "state needs another word", "openetl state show, openetl state reset, openetl state rebaseline"),
        (["plan", "--fiel", "x"], "openetl plan has no option --fiel", "did you mean --file? openetl plan --help lists the options"),
        (["plan", "--xyzzy"], "openetl plan has no option --xyzzy", "openetl plan --help lists the options"),
        (["plan", "-Z"], "openetl plan has no option -Z", "openetl plan --help lists the options"),
        (["plan", "-f"], "--file needs a value: FILE|DIR", "openetl plan --help lists the options"),
        (["plan", "--quiet=yes"], '--quiet takes no value, but "yes" is given', None),
        (["plan"], "openetl plan needs -f FILE|DIR", "give the resource files, e.g. openetl plan -f shop.yaml"),
        (["runs", "-o", "yaml"], '--output is text|json, not "yaml"', "openetl runs --help lists the options"),
        (["--log-format", "xml", "runs"], '--log-format is text|json, not "xml"', "openetl --help lists the options"),
        (["runs", "a", "b"], 'openetl runs takes [PIPELINE|RUN_ID]: "b" is too many', "openetl runs --help shows how it is used"),
        (["version", "x"], 'openetl version takes no arguments: "x" is too many', "openetl version --help shows how it is used"),
        (["checkpoints"], "openetl checkpoints needs PIPELINE", "openetl checkpoints --help shows how it is used"),
        (["run"], "openetl run needs PIPELINE or -f FILE", "openetl status lists the stored pipelines"),
        (["run", "x", "--wait", "soon"], "--wait soon is not a duration", "a duration is written 30s, 10m or 1h30m"),
        (["runs", "--limit", "0"], "--limit 0 is not a number from 1 to 1000000", None),
        (["runs", "--day", "2026-02-30"], "--day 2026-02-30 is not a day", "write 2026-11-30, today or yesterday (UTC)"),
        (["runs", "--since", "soon"], "--since soon is neither a duration nor a time", "write 2h, 7d, 2026-11-30 or 2026-11-30T08:00 (UTC)"),
        (["runs", "--since", "2h", "--day", "today"], "--since and --day cannot stand together", None),
        (["init"], "openetl init needs --from URL", "e.g. openetl init --from sqlite:shop.db"),
    ],
)  # fmt: skip
def test_message(run, args, message, fix):
    result = run(*args).exits(2)
    assert result.stderr == f"openetl: USAGE: {message}\n" + (f"  fix: {fix}\n" if fix else "")
    assert result.stdout == ""


def test_error_as_json_on_stdout_too(run):
    result = run("run", "nope", "--output", "json").exits(2)
    assert result.json == {
        "error": {
            "code": "RESOURCE_NOT_FOUND",
            "message": 'there is no pipeline "nope"',
            "at": None,
            "fix": "no pipeline is stored or given: openetl apply -f FILE stores resources, -f FILE gives them",
        }
    }
    assert result.stderr.startswith('openetl: RESOURCE_NOT_FOUND: there is no pipeline "nope"\n')


def test_options_stand_anywhere(run):
    for args in (
        ["--output", "json", "version"],
        ["version", "--output", "json"],
        ["version", "--output=json"],
        ["version", "-ojson"],
        ["version", "-o", "json"],
    ):
        assert run(*args).ok().json["version"] == "0.1.0"


def test_double_dash_ends_the_options(run):
    assert 'there is no pipeline "--help"' in run("run", "--", "--help").exits(2).stderr


def test_failpoint_that_does_not_exist(run):
    result = run("version", env={"OPENETL_FAILPOINT": "nowhere"}).exits(2)
    assert result.stderr == (
        "openetl: USAGE: OPENETL_FAILPOINT=nowhere: there is no such failpoint\n  fix: openetl debug failpoints lists them\n"
    )


def test_full_output_is_an_error(openetl, tmp_path):
    import subprocess

    with open("/dev/full", "w") as full:
        done = subprocess.run([openetl, "help"], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "openetl: IO: standard output cannot be written: No space left on device\n"


def test_reader_that_went_away_is_not(openetl, tmp_path):
    import subprocess

    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {openetl} help --man | head -n 1"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
