"""Schedules as status shows them, and cron lines that are no cron lines."""

import datetime

import pytest
from support import shop


def test_next_run_of_a_cron_line(run, tmp_path):
    shop.make(tmp_path)
    (tmp_path / "shop.yaml").write_text(shop.RESOURCES.replace("{ every: 1h }", '{ cron: "15 2 * * *" }'))
    run("apply", "-f", "shop.yaml").ok()
    now = datetime.datetime.now(datetime.timezone.utc)
    (pipeline,) = run("status", "-o", "json").ok().json["pipelines"]
    assert pipeline["schedule"] == "cron 15 2 * * *"
    due = datetime.datetime.fromisoformat(pipeline["next_run_at"])
    assert (due.hour, due.minute, due.second) == (2, 15, 0)
    assert datetime.timedelta(0) <= due - now <= datetime.timedelta(days=1)
    line = run("status").ok().stdout.splitlines()[1]
    assert line.split()[-2:] == [due.strftime("%Y-%m-%d"), "02:15:00"]


@pytest.mark.parametrize(
    "line, problem",
    [
        ("15 2 * *", "expected five fields (minute hour day month weekday), found 4"),
        ("@daily", "expected five fields (minute hour day month weekday), found 1"),
        ("60 2 * * *", 'the minute "60" is not a number from 0 to 59, a range (a-b), a step (*/n) or a list of these'),
        ("0 2 * * fry", 'the day of the week "fry" is not a number from 0 to 7 or a name, a range (a-b), a step (*/n) or a list of these'),
        ("0 0 30 2 *", "no month it names has such a day, so it would never run"),
    ],
)  # fmt: skip
def test_a_bad_line_is_refused_with_its_place(run, tmp_path, line, problem):
    shop.make(tmp_path)
    (tmp_path / "shop.yaml").write_text(shop.RESOURCES.replace("{ every: 1h }", f'{{ cron: "{line}" }}'))
    result = run("apply", "-f", "shop.yaml").exits(2)
    assert result.stderr.startswith("openetl: RESOURCE_INVALID: shop.yaml:19:21: spec.schedule.cron: ")
    assert problem in result.stderr
    assert run("status").ok().stdout.startswith("no pipelines")
