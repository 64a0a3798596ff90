"""Verdicts that can say no: planted bad models are never good, sound ones nearly always."""

from dataclasses import replace

import numpy as np
import pytest

from armid.estimation.mixed import MixedEffects
from armid.torque.model import model_of
from armid.validation import validate
from armid.validation.judging import judge
from tests.validation.arms import VALUES, data_of, planar
from tests.validation.planted import Sound, heavy_link, spiky_friction, with_gain

NARROW = "torque without its intervals"
CARRIED = {"m2": 0.5, "mx2": 0.5 * 0.3, "Izz2": 0.5 * 0.3**2}


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    return planar(tmp_path_factory.mktemp("planar"))


@pytest.fixture(scope="module")
def fit(robot):
    return MixedEffects().fit(robot, data_of(robot, seed=1))


def slow_data(robot, seed):
    """The motion of a seed at a quarter of its speed."""
    data = data_of(robot, seed=seed)
    q, qd, qdd = data.q, data.qd / 4.0, data.qdd / 16.0
    torque = model_of(robot).inverse_dynamics(q, qd, qdd, VALUES)
    torque = torque + 0.05 * np.random.default_rng(0).normal(size=torque.shape)
    return replace(data, time=4.0 * data.time, qd=qd, qdd=qdd, torque=torque)


def codes(check):
    """What speaks against a model, by the last part of its code."""
    return [reason.code.partition(".")[2] for reason in check.reasons]


def test_a_sound_model_is_good(robot, fit):
    """Nothing is found, the interval of a sample holds in at least 90 % of the rows, and all rows have a class."""
    check = validate(fit, data_of(robot, seed=2))
    assert (check.verdict, check.usable_for, codes(check)) == ("good", (), ["good"])
    for joint in check.joints:
        assert joint.coverage > 0.90
        assert 0.0 < joint.reversal_rows < 0.2
        assert joint.standstill_rows < 0.001


@pytest.mark.parametrize(
    ("plant", "code", "use"),
    [
        (lambda fit: heavy_link(fit, 1, 2), "link_mass", "torque prediction"),
        (lambda fit: spiky_friction(fit, 0), "friction_growth", "motion without changes of direction"),
        (lambda fit: replace(fit, residual_rms=0.2 * fit.residual_rms, recording=None), "coverage", NARROW),
    ],
)
def test_planted_in_the_model(robot, fit, plant, code, use):
    """A heavy link, spiky friction and intervals too narrow: each is found, named and limits what the model is for."""
    check = validate(plant(fit), data_of(robot, seed=2))
    assert check.verdict == "usable"
    assert code in codes(check)
    assert use in check.usable_for
    assert str(check.reasons[0]) in check.summary().splitlines()[1]


def test_friction_must_take_energy(robot, fit):
    """Coulomb friction with the wrong sign drives the joint at low speed, and is called so."""
    wrong = replace(fit, values=np.where([n == "fc1" for n in fit.names], -20.0, fit.values))
    assert "friction_power" in codes(validate(wrong, data_of(robot, seed=2)))


def test_another_gain_or_payload_is_poor(robot, fit):
    """Torque reported 15 % larger, and half a kilogram more at the flange, contradict the model."""
    data = data_of(robot, seed=2)
    larger = validate(fit, replace(data, torque=data.torque * [1.15, 1.0]))
    assert (larger.verdict, codes(larger)[0]) == ("poor", "other_gain")
    assert larger.reasons[0].values["gain"] == pytest.approx(1.15, abs=0.01)
    loaded = data_of(robot, seed=2, extra=lambda t, m: model_of(robot).inverse_dynamics(*m, CARRIED))
    check = validate(fit, loaded)
    assert (check.verdict, codes(check)[0]) == ("poor", "other_payload")
    assert check.reasons[0].values["mass"] == pytest.approx(0.5, rel=0.1)


def test_slow_training_is_not_good_for_fast_motion(robot):
    """Four times the speed of the training data is never good, however small the error."""
    check = validate(MixedEffects().fit(robot, slow_data(robot, 1)), data_of(robot, seed=2))
    assert not check.good
    assert "faster" in codes(check)


def test_a_reference_outside_its_interval_is_poor(robot, fit):
    """One that is inside changes nothing; ten inside and one outside are poor, and the one is named."""
    names = ("fc1", "fv1", "fc2", "fv2")
    inside = {name: VALUES[name] for name in names}
    assert validate(fit, data_of(robot, seed=2), reference=inside).good
    check = validate(fit, data_of(robot, seed=2), reference={**inside, "fc1": 1.1 * VALUES["fc1"]})
    assert (check.verdict, codes(check)) == ("poor", ["reference"])
    assert check.reasons[0].values["name"] == "fc1"


def test_where_the_nominal_model_is_better_it_says_so(robot, fit):
    """An inertia of ours that is wrong by a fifth loses against the right one in the file, on the joints named."""
    inertia = np.zeros((2, 10))
    for link in (1, 2):
        names = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
        inertia[link - 1] = [VALUES.get(f"{name}{link}", 0.0) for name in names]
    worse = replace(fit, values=np.where([n.startswith("mx2") for n in fit.names], 1.05 * fit.values, fit.values))
    worse = replace(worse, robot=replace(fit.robot, nominal_inertia=inertia))
    check = validate(worse, data_of(robot, seed=2))
    assert "nominal" in codes(check)
    assert not check.good


def test_a_nominal_model_that_is_better_at_nothing_that_matters(robot, fit):
    """Without noise, errors of a millionth of the torque differ by factors; above a tenth of the limit they count.

    Of two errors that are nearly the same, neither is better: 1.1 % where the nominal inertia has 1.0 %.
    """
    check = validate(fit, data_of(robot, seed=2))
    for error, nominal, found in ((1e-3, 1e-4, False), (0.02, 0.002, True), (0.011, 0.01, False), (0.04, 0.03, True)):
        exact = {"noise_ratio": float("nan"), "nrms_moving": error, "nominal_nrms_moving": nominal}
        judged = judge(fit, replace(check, joints=tuple(replace(joint, **exact) for joint in check.joints)))
        assert ("nominal" in codes(judged)) == found


def test_training_data_that_fit_worse_than_others(robot, fit):
    """Named where what remains of them is beyond the limit of an error, not where it is a small part of the torque."""
    data = data_of(robot, seed=2)
    spread = data.torque.std(axis=0)
    for share, word in ((0.05, "good"), (0.3, "training_misfit")):
        check = validate(replace(fit, residual_rms=np.maximum(share * spread, fit.residual_rms)), data)
        assert codes(check)[0] == word


def test_an_error_within_the_limits_that_repeats_with_the_motion_is_named(robot, fit):
    """Friction that is less than in training: 8 % of the torque's spread, all of it a function of velocity."""
    data = data_of(robot, seed=2)
    changed = data.torque - np.sign(data.qd) * [0.0, 0.08 * np.std(data.torque[:, 1])]
    check = validate(replace(fit, recording=np.array([[10.0] * 3] * 2)), replace(data, torque=changed))
    assert (check.verdict, codes(check)) == ("usable", ["structure"])
    assert check.reasons[0].values["cause"] == "velocity"


def test_a_joint_at_rest_is_judged_by_what_friction_holds(robot, fit):
    """At rest torque may be anything within friction's band; 10 N m beyond it are found."""
    data = data_of(robot, seed=2)
    rest = np.arange(len(data.time)) > 2000
    q = np.where(rest[:, None], data.q[2000], data.q)
    qd, qdd = (np.where(rest[:, None], 0.0, array) for array in (data.qd, data.qdd))
    torque = model_of(robot).inverse_dynamics(q, qd, qdd, {k: v for k, v in VALUES.items() if k[:2] != "fc"})
    torque = torque + np.sign(qd) * [VALUES["fc1"], VALUES["fc2"]]
    held = torque + rest[:, None] * np.array([0.9 * VALUES["fc1"], -0.9 * VALUES["fc2"]])
    still = replace(data, q=q, qd=qd, qdd=qdd, torque=held)
    check = validate(fit, still)
    assert check.good
    assert check.joints[0].standstill_rows > 0.3
    beyond = validate(fit, replace(still, torque=held + rest[:, None] * [10.0, 0.0]))
    assert "at_standstill" in codes(beyond)


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(400, 410))
def test_planted_models_of_random_arms_are_never_good(tmp_path, seed):
    """Heavy link, spiky friction, a gain in training, a payload, slow training used fast.

    A gain in both logs is that of the second joint, which carries weight: elsewhere torque may not show it.
    """
    sound = Sound(seed, tmp_path)
    joint = 1 + seed % (sound.robot.n_joints - 1)
    larger = sound.identified(with_gain(sound.log, 1, 1.3))
    planted = {
        "heavy": (heavy_link(sound.fit), sound.other),
        "spiky": (spiky_friction(sound.fit, joint), sound.other),
        "gain": (sound.identified(with_gain(sound.log, joint, 1.15)), sound.other),
        "gain, both logs": (larger, with_gain(sound.other, 1, 1.3)),
        "payload": (sound.fit, sound.loaded_log(0.1)),
        "slow": (sound.identified(sound.slow_log()), sound.other),
    }
    found = {name: validate(*pair) for name, pair in planted.items()}
    for name, check in found.items():
        print(f"planted {seed} {name}: {check.in_words}; {check.reasons[0]}")
    assert not [name for name, check in found.items() if check.good]


@pytest.mark.prove
def test_sound_models_of_random_arms_are_good(tmp_path):
    """At least 27 of 30."""
    found = {}
    for seed in range(400, 430):
        sound = Sound(seed, tmp_path)
        found[seed] = validate(sound.fit, sound.other)
        print(f"sound {seed}: {found[seed].in_words}; {found[seed].reasons[0]}")
    assert sum(check.good for check in found.values()) >= 27
