"""Stages: kept when nothing changed, repeated when something did, never half done."""

import pytest

from armid.run.settings import Settings
from armid.run.stages import Stage, Workplace, carry_out, clear


class Line:
    """Two stages, each counting its calls: the second writes what the first wrote, doubled."""

    def __init__(self, folder, outside=()):
        self.calls, self.folder, self.outside = [], folder, outside
        self.fail, self.robot = False, "digest"

    def first(self, place):
        self.calls.append("first")
        (place / "a").write_text(str(place.settings.seed))

    def second(self, place):
        self.calls.append("second")
        if self.fail:
            (place / "b").write_text("half")
            raise RuntimeError
        (place / "b").write_text(2 * (place / "a").read_text())

    def run(self, **settings):
        stages = [
            Stage("first", "first", self.first, ("a",), choices=("seed",), outside=self.outside),
            Stage("second", "second", self.second, ("b",), reads=("a",)),
        ]
        place = Workplace(self.folder, Settings(robot="pa10", **settings), lambda text, share: None, self.robot)
        return [done.kept for done in carry_out(stages, place, lambda done: None)]


def test_nothing_is_repeated_without_a_reason(tmp_path):
    line = Line(tmp_path)
    assert line.run() == [False, False]
    assert line.run(periods=77) == [True, True]  # a setting that no stage depends on


def test_a_setting_repeats_the_stages_that_depend_on_it(tmp_path):
    line = Line(tmp_path)
    line.run()
    assert line.run(seed=4) == [False, False]
    assert (tmp_path / "b").read_text() == "44"


def test_only_what_follows_from_a_change_is_repeated(tmp_path):
    line = Line(tmp_path)
    line.run()
    (tmp_path / "b").write_text("tampered")
    assert line.run() == [True, False]
    (tmp_path / "a").unlink()
    assert line.run() == [False, True]  # made again, the same: what follows is still right
    assert (tmp_path / "b").read_text() == "00"


def test_a_changed_file_of_the_user_counts(tmp_path):
    file = tmp_path / "robot.yaml"
    file.write_text("1")
    line = Line(tmp_path, (str(file),))
    line.run()
    file.write_text("2")
    assert line.run()[0] is False


def test_an_interrupted_stage_is_done_again(tmp_path):
    line = Line(tmp_path)
    line.fail = True
    with pytest.raises(RuntimeError):
        line.run()
    line.fail = False
    assert line.run() == [True, False]
    assert (tmp_path / "b").read_text() == "00"


def test_another_robot_repeats_everything(tmp_path):
    line = Line(tmp_path)
    line.run()
    line.robot = "other"
    assert line.run() == [False, False]


def test_what_this_run_does_not_make_is_removed(tmp_path):
    """A result of an earlier run with other stages must not be taken for one of this run."""
    line = Line(tmp_path)
    line.run()
    place = Workplace(tmp_path, Settings(robot="pa10"), lambda text, share: None, line.robot)
    stages = [Stage("first", "first", line.first, ("a",), choices=("seed",))]
    clear(stages, place)
    carry_out(stages, place, lambda done: None)
    assert not (tmp_path / "b").exists()
    assert (tmp_path / "a").exists()


def test_a_damaged_mark_is_no_mark(tmp_path):
    line = Line(tmp_path)
    line.run()
    (tmp_path / ".stages" / "first.json").write_text('{"key"')
    assert line.run() == [False, True]
