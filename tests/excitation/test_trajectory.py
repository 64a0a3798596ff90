"""The trajectory base: sampling, resting outside, JSON, bad input."""

import json

import numpy as np
import pytest

from armid.errors import ArmidError
from armid.excitation import FourierSeries, programme
from armid.excitation.polynomial import quintic, trapezoidal
from armid.excitation.profiles import rx60_verification
from armid.excitation.sequence import Programme
from armid.excitation.trajectory import SamplingError, Trajectory, TrajectoryError, load_trajectory, save_trajectory
from armid.files import checked, plain


def series(frequency=0.1, joints=2):
    rng = np.random.default_rng(1)
    return FourierSeries(
        frequency, (1, 2, 3), rng.normal(size=(joints, 3)), rng.normal(size=(joints, 3)), rng.normal(size=joints)
    )


def some_of_each():
    return {
        "fourier": series(),
        "quintic": quintic([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]], [1.0, 2.0]),
        "trapezoid": trapezoidal([[0.0, 1.0], [1.0, 0.0]], 1.0, 2.0),
        "rx60": rx60_verification(),
        "programme": programme(series(), home=[0.0, 0.0], periods=3, settle=1),
    }


@pytest.mark.parametrize("name", some_of_each())
def test_json_keeps_every_digit(name, tmp_path):
    """Written and read again, a trajectory moves exactly as before."""
    one = some_of_each()[name]
    save_trajectory(one, tmp_path / "trajectory.json")
    other = load_trajectory(tmp_path / "trajectory.json")
    assert type(other) is type(one)
    assert plain(other) == plain(one) == json.loads(json.dumps(plain(one)))
    times = np.linspace(-1, one.duration + 1, 57)
    for before, after in zip(one.at(times), other.at(times), strict=True):
        assert np.array_equal(before, after)
    assert [path.name for path in tmp_path.iterdir()] == ["trajectory.json"]


def test_every_registered_type_is_covered_by_the_round_trip():
    names = {part.type_name for one in some_of_each().values() for part in (one, *getattr(one, "parts", ()))}
    assert names == {name for name, kind in Trajectory.types.items() if kind.__module__.startswith("armid.")}


def test_rests_outside_unless_periodic():
    """Before and after, a finite trajectory holds its end postures; a periodic one goes on."""
    moving = rx60_verification()
    q, qd, qdd = moving.at([-1.0, 0.0, 20.0, 21.0])
    assert np.array_equal(q[0], q[1])
    assert np.array_equal(q[2], q[3])
    assert np.abs(qd[1]).max() > 0.1
    assert not qd[[0, 3]].any()
    assert not qdd[[0, 3]].any()
    periodic = series()
    for here, later in zip(periodic.at([0.3, 7.1]), periodic.at([160.3, -2.9]), strict=True):
        assert np.allclose(here, later, atol=1e-12)


def test_one_period_without_its_last_instant():
    times, motion = series(0.1).sample(150)
    assert len(times) == len(motion.q) == 1500
    assert times[0] == 0
    assert times[-1] == pytest.approx(10 - 1 / 150)


def test_finite_trajectories_are_sampled_to_their_end():
    times, motion = quintic([[0.0], [1.0]], [1.05]).sample(10)
    assert times[-1] == pytest.approx(1.1)
    assert motion.q[-1, 0] == pytest.approx(1)
    assert motion.qd[-1, 0] == 0
    assert len(quintic([[0.0], [1.0]], [1.0]).sample(1000)[0]) == 1001


def test_period_that_does_not_fit_the_rate():
    """SW-3: 0.033 Hz at 12 ms is 2525.25 samples; the message proposes what would fit, and it does."""
    with pytest.raises(
        SamplingError, match=r"2525\.25\d* samples.*whole number: use 83\.325 Hz, or a period of 30\.3 s"
    ):
        series(0.033).sample(1 / 0.012)
    with pytest.raises(SamplingError) as info:
        series(0.033).sample(1 / 0.012)
    assert len(series(0.033).sample(info.value.nearest_rate_hz)[0]) == 2525
    assert len(series(1 / info.value.nearest_period).sample(1 / 0.012)[0]) == 2525
    assert len(series(1 / 30).sample(1 / 0.012)[0]) == 2500
    with pytest.raises(SamplingError, match="1 samples"):
        series(10).sample(1)


@pytest.mark.parametrize("times", [[[0.0]], [np.nan], ["now"], None, 0.5])
def test_bad_times(times):
    with pytest.raises(TrajectoryError, match="times"):
        series().at(times)


@pytest.mark.parametrize("rate", [0, -1, np.nan, np.inf, "fast", True])
def test_bad_rate(rate):
    with pytest.raises(TrajectoryError, match="rate_hz"):
        series().sample(rate)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "furier"}, r"trajectory\.type: is 'furier', did you mean 'fourier'"),
        ({"type": 3}, r"trajectory\.type: is '3'; valid: fourier"),
        ({"sine": None}, r"trajectory: sine must be a table"),
        ({"sine": [[1, 2, 3], [1, 2]]}, r"trajectory\.sine: must be a list of numbers, all rows of one length"),
        ({"sine": [["1", "2", "3"]] * 2}, r"trajectory\.sine: must be a list of numbers"),
        ({"sine": [[1, 2]] * 2}, r"sine has shape \(2, 2\); it must be \(2, 3\)"),
        ({"offset": [0, float("nan")]}, "offset must be finite"),
        ({"offset": []}, "offset is empty"),
        ({"harmonics": [1, 2, 2]}, "harmonics must be different"),
        ({"harmonics": 3}, r"trajectory\.harmonics: must be a list, not 3"),
        ({"base_frequency_hz": -0.1}, "base_frequency_hz is -0.1; it must be greater than 0"),
        ({"base_frequency_hz": True}, r"trajectory\.base_frequency_hz: must be a number, not True"),
        ({"cosines": []}, r"trajectory\.cosines: is not a known key, did you mean 'cosine'"),
        ({"cosine": ...}, r"trajectory\.cosine: is missing"),
        ({"offset": {"type": "fourier"}}, r"trajectory\.offset: must be a list of numbers"),
    ],
)
def test_bad_data_names_the_field(change, message, tmp_path):
    """Each fault is one sentence naming file and field."""
    data = {**plain(series()), **change}
    data = {key: value for key, value in data.items() if value is not ...}
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({"format": "armid trajectory 1", "trajectory": data}))
    with pytest.raises(ArmidError, match=f"bad.json: .*{message}"):
        load_trajectory(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"3", b'"x"', b"\xff\xfe\x00", b"{}", b'{"format": "armid trajectory 9"}', b"[" * 100000,
     b'{"format": "armid trajectory 1", "trajectory": []}', b'{"format": "armid trajectory 1", "trajectory": null}'],
)  # fmt: skip
def test_malformed_files(content, tmp_path):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(ArmidError, match=r"bad\.json") as info:
        load_trajectory(path)
    assert "\n" not in str(info.value)


def test_files_that_are_not_there(tmp_path):
    for path, problem in ((tmp_path / "none.json", "no such file"), (tmp_path, "is a folder")):
        with pytest.raises(ArmidError, match=problem):
            load_trajectory(path)
    with pytest.raises(ArmidError, match="cannot be written"):
        save_trajectory(series(), tmp_path / "no" / "folder.json")


def test_nested_faults_are_found():
    data = plain(programme(series(), periods=2))
    assert isinstance(checked(data, Trajectory, "plan"), Programme)
    data["parts"][1]["trajectory"]["sine"] = "x"
    with pytest.raises(ArmidError, match=r"plan: parts\[2\]\.trajectory\.sine: must be a list of numbers"):
        checked(data, Trajectory, "plan")
    with pytest.raises(ArmidError, match=r"plan: parts\[1\]: must be a mapping with a type, not 1"):
        checked({"type": "programme", "parts": [1, 2], "main": 0}, Trajectory, "plan")


def test_trajectories_cannot_be_changed():
    one = series()
    with pytest.raises(ValueError, match="read-only"):
        one.sine[0, 0] = 1.0
    with pytest.raises(AttributeError):
        one.offset = np.zeros(2)
    given = np.zeros(2)
    FourierSeries(1.0, (1,), np.zeros((2, 1)), np.zeros((2, 1)), given)
    given[0] = 1.0  # the caller's array stays his own
