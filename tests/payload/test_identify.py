"""Payloads of virtual arms: exact without noise, honest with it, silent where data say nothing."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.dynamics.model import Motion
from armid.errors import ArmidError
from armid.estimation import identify
from armid.logs.log import Log, LogInfo
from armid.payload import Requirement, identify_payload, load_payload
from armid.payload.body import described
from armid.payload.joint import LoadedProblem, arm_columns, curve_precision, solve_jointly
from armid.robot.geometry import placement
from armid.robot.inertia import change_of_frame, from_com, impossibility
from armid.torque.friction.term import FrictionTerm
from armid.torque.payload import LoadedTorqueModel
from tests.payload.stand import BODY, MORE_FRICTION, RATE_HZ, Draws, dataset, swing, torque
from tests.random_arms import random_arm


@pytest.mark.parametrize(
    ("name", "simplify"), [("kr15", "none"), ("pa10", "none"), ("pa10", "published"), ("powerball", "none")]
)
def test_exact_without_noise(name, simplify):
    """MuJoCo's payload is found, with friction that has changed; also where the description neglects the last link."""
    draws = Draws(name, simplify=simplify)
    if simplify == "published":  # what is neglected is not there either
        draws = _without_neglected(draws)
    found = identify_payload(draws.fit(0.0), draws.loaded(0.0))
    np.testing.assert_allclose(found.parameters, BODY, atol=2e-4)
    np.testing.assert_allclose(found.free, BODY, atol=1e-5)
    for change in found.friction:
        assert change.value == pytest.approx(MORE_FRICTION * change.before, rel=1e-4)
    assert found.good
    assert max(joint.rms_with for joint in found.joints) < 0.01


def _without_neglected(draws):
    """The arm whose truth has the zeros of the simplification."""
    robot = draws.robot
    inertia = robot.virtual.inertia.copy()
    names = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
    for link, row in enumerate(inertia, start=1):
        row[[i for i, name in enumerate(names) if f"{name}{link}" in robot.zero]] = 0.0
    inertia[-1, 0] = max(inertia[-1, 0], 1e-9)
    draws.robot = replace(robot, virtual=replace(robot.virtual, inertia=inertia))
    draws.arm_torque, draws.torque = (
        _rigid(draws.robot, draws.arm_motion, None, 1.0),
        _rigid(draws.robot, draws.motion, BODY, MORE_FRICTION),
    )
    return draws


def _rigid(robot, motion, payload, more):
    """Torque by armid's own inverse dynamics: MuJoCo takes no links without mass, so this shows consistency only."""
    import armid

    values = {}
    inertia = robot.virtual.inertia.copy()
    if payload is not None:
        inertia[-1] += change_of_frame(robot.tool) @ payload
    bare = replace(robot, zero=frozenset(), known={})
    model = armid.Model(bare)
    for link, row in enumerate(inertia, start=1):
        values |= dict(zip(model.names[10 * (link - 1) : 10 * link], row, strict=True))
    for joint, c in enumerate(robot.virtual.coefficients, start=1):
        values |= {f"fv{joint}": more * c["fv"], f"fc{joint}": more * c["fc"]}
        values[f"Im{joint}"] = robot.virtual.rotor_inertia[joint - 1]
    return model.inverse_dynamics(*motion, values)


def test_few_joints_and_a_tool_frame():
    """Joints at rest take no part; the result is in the tool frame."""
    draws = Draws("kr15", joints=(2, 3, 4, 5))
    tool = placement(np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), np.array([0.01, 0.02, 0.1]))
    fit = draws.fit(0.0)
    found = identify_payload(replace(fit, robot=replace(fit.robot, tool=tool)), draws.loaded(0.0))
    assert [joint.moved for joint in found.joints] == [False, False, True, True, True, True]
    np.testing.assert_allclose(change_of_frame(tool) @ found.free, BODY, atol=1e-5)
    assert {change.name[-1] for change in found.friction} == set("3456")


def covered(draws, count, **options):
    """Share of 95 % intervals that hold the truth, and scores in standard deviations, (draws, quantities)."""
    truth = described(draws.payload)
    inside, scores = [], []
    for _ in range(count):
        found = identify_payload(draws.fit(), draws.loaded(), gain=0.0, **options)
        inside.append([q.lower <= t <= q.upper for q, t in zip(found.quantities, truth, strict=True)])
        scores.append([(q.value - t) / q.sigma for q, t in zip(found.quantities, truth, strict=True)])
        assert impossibility(found.parameters) is None
    return np.array(inside), np.array(scores)


def test_intervals_hold_the_truth():
    """Noise on both logs, arm and payload estimated anew each time: 95 % intervals hold the truth in 92 to 98 %."""
    inside, _ = covered(Draws("kr15", joints=(2, 3, 4, 5)), 40)
    assert 0.92 <= inside.mean() <= 0.98


@pytest.mark.prove
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("kr15", BODY),
        ("kr15", from_com(12.0, [0.0, -0.1, 0.2], np.diag([0.4, 0.3, 0.2]))),
        ("pa10", BODY),
        ("powerball", from_com(1.5, [0.02, 0.0, 0.05], np.diag([0.004, 0.005, 0.003]))),
    ],
)
def test_intervals_hold_the_truth_at_length(name, body, seed):
    """Several arms, payloads and seeds, 150 draws each; every quantity by itself within the binomial's reach."""
    inside, _ = covered(Draws(name, payload=body, seed=seed), 150)
    assert 0.92 <= inside.mean() <= 0.98
    assert inside.mean(axis=0).min() >= 0.88


def test_the_arms_uncertainty_is_in_the_interval():
    """With noise on the arm's log alone the payload scatters as its interval says, which names the arm's share."""
    draws = Draws("kr15")
    loaded = draws.loaded(1e-3)
    scores, shares = [], []
    for _ in range(20):
        found = identify_payload(draws.fit(), loaded, gain=0.0)
        scores.append((found.free - BODY) / np.sqrt(np.diag(found.covariance)))
        shares.append(found.arm_share)
    assert min(shares) > 0.9
    assert 0.7 < np.std(scores) < 1.3


def test_an_uncertain_scale_of_torque():
    """Torque that is 1 % off in both logs moves the mass by 1 %, which the interval then holds; the centre stays."""
    draws = Draws("kr15")
    data = dataset(draws.robot, draws.arm_motion, 1.01 * draws.arm_torque)
    from armid.estimation.least_squares import WeightedLeastSquares

    fit = WeightedLeastSquares().fit(draws.robot, data)
    loaded = dataset(draws.robot, draws.motion, 1.01 * draws.torque)
    found = identify_payload(fit, loaded, gain=0.01)
    assert found.mass == pytest.approx(1.01 * 5.0, rel=1e-4)
    np.testing.assert_allclose(found.com, [0.03, 0.05, 0.12], atol=1e-4)
    # Exact data show that six gains agree, each of which is known to 1 %; rounding tells nothing of them.
    assert found.quantity("m").sigma == pytest.approx(0.01 / np.sqrt(6.0) * found.mass, rel=0.02)
    noisy = [
        dataset(draws.robot, motion, 1.01 * (tau + draws.noise * draws.rng.normal(size=tau.shape)))
        for motion, tau in ((draws.arm_motion, draws.arm_torque), (draws.motion, draws.torque))
    ]
    fit = WeightedLeastSquares().fit(draws.robot, noisy[0])
    found = identify_payload(fit, noisy[1], gain=0.01)
    assert found.quantity("m").lower < 5.0 < found.quantity("m").upper
    assert not identify_payload(fit, noisy[1], gain=0.0).quantity("m").lower < 5.0


def test_correlated_noise_and_filtered_rows_widen_intervals():
    """The same torque noise, slow instead of white: intervals grow, and the payload scatters as they say."""
    draws = Draws("kr15", joints=(2, 3, 4, 5))
    fit = draws.fit(1e-3)
    scores, widths = [], []
    for _ in range(15):
        white = draws.rng.normal(size=draws.torque.shape)
        slow = np.zeros_like(white)
        for row in range(1, len(white)):
            slow[row] = 0.8 * slow[row - 1] + 0.6 * white[row]
        found = identify_payload(fit, dataset(draws.robot, draws.motion, draws.torque + draws.noise * slow), gain=0.0)
        scores.append((found.free - BODY) / np.sqrt(np.diag(found.covariance)))
        widths.append(found.quantity("m").sigma)
    plain = identify_payload(fit, draws.loaded(), gain=0.0).quantity("m").sigma
    assert np.mean(widths) > 1.8 * plain
    assert np.std(scores) < 1.35


def test_slow_motion_tells_no_inertia():
    """A minute-long swing shows weight and centre, not inertia; that is said, and the body is possible all the same."""
    draws = Draws("kr15")
    motion = swing(draws.robot, 2, period=120.0)
    motion = type(motion)(*(array[::12] for array in motion))
    tau = torque(draws.robot, motion, BODY) + draws.noise * draws.rng.normal(size=motion.q.shape)
    found = identify_payload(draws.fit(0.1), dataset(draws.robot, motion, tau))
    told = {quantity.name: quantity.determined for quantity in found.quantities}
    assert told["m"]
    assert told["c_z"]
    assert not any(told[name] for name in ("Ixx", "Iyy", "Izz"))
    assert "Not determined by these data: Ixx" in " ".join(map(str, found.notes))
    assert any("faster" in line for line in map(str, found.advice))
    assert impossibility(found.parameters) is None


def test_a_run_without_payload_helps():
    """An error of the arm's model that both runs share (a spring nobody described) drops out with `empty`."""
    draws = Draws("kr15")
    fit = draws.fit(0.5)
    unknown = 0.02 * np.abs(draws.torque).max(axis=0) * np.sin(draws.motion.q + 0.5)
    empty = torque(draws.robot, draws.motion) + unknown + 0.2 * draws.noise * draws.rng.normal(size=unknown.shape)
    loaded = draws.torque + unknown + 0.2 * draws.noise * draws.rng.normal(size=unknown.shape)
    alone, both = (
        identify_payload(fit, dataset(draws.robot, draws.motion, loaded), empty=more)
        for more in ((), dataset(draws.robot, draws.motion, empty))
    )
    wrong = [np.abs(described(found.parameters) - described(BODY))[:4] for found in (alone, both)]
    assert np.linalg.norm(wrong[1]) < 0.5 * np.linalg.norm(wrong[0])


def test_friction_in_proportion_to_the_load():
    """A load term counts the payload's weight too."""
    draws = Draws("kr15")
    fit = draws.fit(0.0)
    values = dict(zip(fit.columns, fit.values.tolist(), strict=True))
    term = FrictionTerm("load", 2)
    wide = np.zeros((len(fit.names) + 1,) * 2)
    wide[:-1, :-1] = fit.covariance
    fit = replace(
        fit,
        columns=(*fit.columns, *term.names),
        values=np.append(fit.values, 0.1),
        covariance=wide,
        terms=(term,),
        gain_effects=None,
        load_values=values,
        identifiability=replace(fit.identifiability, classes=(*fit.identifiability.classes, "determined")),
    )
    rigid = torque(draws.robot, draws.motion, BODY, 0.0)[:, 2]
    reflected = draws.robot.virtual.rotor_inertia[2] * draws.robot.drives[2].gear_ratio ** 2 * draws.motion.qdd[:, 2]
    tau = draws.torque.copy()
    tau[:, 2] += 0.1 * np.sign(draws.motion.qd[:, 2]) * np.abs(rigid - reflected)
    found = identify_payload(fit, dataset(draws.robot, draws.motion, tau))
    np.testing.assert_allclose(found.free[:4], BODY[:4], atol=5e-3)
    load = next(change for change in found.friction if change.name == "fl3")
    assert load.value == pytest.approx(0.1, abs=5e-3)
    # Torque without the regressor is torque by the regressor, also of the carried body.
    model = LoadedTorqueModel(fit.torque_model, BODY)
    x = np.concatenate([fit.values, 1.5 * BODY])
    np.testing.assert_allclose(model.linear_torque(draws.motion, x), model.regressor(draws.motion) @ x, atol=1e-8)


class Losses:
    """Fits of an arm by defaults and runs with payload, whose drives lose a share of the weight, PA-10 (19)."""

    def __init__(self, name, seed):
        self.draws, self.rng = Draws(name, seed=seed), np.random.default_rng(seed)
        still = [Motion(m.q, 0.0 * m.q, 0.0 * m.q) for m in (self.draws.arm_motion, self.draws.motion)]
        self.weights = [torque(self.draws.robot, m, body, 0.0) for m, body in zip(still, (None, BODY), strict=True)]

    def pair(self, most, number):
        """Each joint loses up to `most`; in every other draw, all of it."""
        draws, rng, joints = self.draws, self.rng, self.draws.robot.n_joints
        lost = rng.uniform(0.0, most, joints) if number % 2 else np.full(joints, most)
        pairs = zip((draws.arm_torque, draws.torque), self.weights, strict=True)
        arm, loaded = (t + lost * w + draws.noise * rng.normal(size=t.shape) for t, w in pairs)
        return identify(draws.robot, dataset(draws.robot, draws.arm_motion, arm)), loaded

    def scores(self, most, count):
        """Errors of the mass in standard deviations."""
        result = []
        for number in range(count):
            fit, loaded = self.pair(most, number)
            mass = identify_payload(fit, dataset(self.draws.robot, self.draws.motion, loaded), gain=0.0).quantity("m")
            result.append((mass.value - BODY[0]) / mass.sigma)
        return np.array(result)


def test_what_drives_lose_of_the_weight_is_lost_of_the_payload_too():
    """Up to 12 % of the weight: the mass is right and its interval holds it; the loaded fit tells the same torque."""
    stand = Losses("kr15", 2)
    fit, tau = stand.pair(0.12, 0)
    loaded = dataset(stand.draws.robot, stand.draws.motion, tau)
    found = identify_payload(fit, loaded, gain=0.0)
    mass = found.quantity("m")
    assert mass.value == pytest.approx(BODY[0], rel=0.03)
    assert abs(mass.value - BODY[0]) < 3.0 * mass.sigma
    error = (tau - found.apply(fit).predict(stand.draws.motion).torque) / stand.draws.noise
    assert np.sqrt(np.mean(error**2)) < 1.25
    assert np.abs(stand.scores(0.03, 4)).max() < 3.5


@pytest.mark.prove
@pytest.mark.parametrize("most", [0.0, 0.02, 0.04, 0.08, 0.12])
@pytest.mark.parametrize("name", ["kr15", "powerball", 311, 312])
def test_intervals_hold_the_truth_with_losses(name, most, tmp_path):
    """40 draws each: 95 % intervals of the mass hold it in 88 % at the least, which binomial chance allows of 95 %."""
    if isinstance(name, int):
        random_arm(name, tmp_path)
        name = str(tmp_path / f"random{name}.yaml")
    scores = Losses(name, 3).scores(most, 40)
    print(f"{name}, {most:.0%}: {np.mean(np.abs(scores) < 1.96):.3f}, z {np.sqrt(np.mean(scores**2)):.2f}")
    assert np.mean(np.abs(scores) < 1.96) >= 0.88


def test_torque_in_proportion_to_the_weight_stays_with_the_arm():
    """A gain of the weight, estimated again, would be taken for the payload; friction curves are estimated again."""
    fit = Draws("kr15").fit()
    terms = tuple(FrictionTerm(law, 1, shapes) for law, shapes in (("gain", ()), ("rest", (0.1,)), ("smooth", (0.05,))))
    arm, friction = arm_columns(
        replace(fit, terms=terms, columns=(*fit.columns, *(name for term in terms for name in term.names)))
    )
    count = len(fit.columns)
    assert {count, count + 1} <= set(arm)
    assert set(range(count + 2, count + 12)) <= set(friction)


def test_a_smooth_curve_changes_by_a_share_of_coulomb_friction():
    """Without that its overlapping bells could be huge and cancel; what is no curve is free."""
    fit = Draws("kr15").fit()
    term = FrictionTerm("smooth", 1, (0.05,))
    own = replace(fit, terms=(term,), columns=(*fit.columns, *term.names))
    precision = curve_precision(own, np.arange(len(own.columns)))
    assert not precision[: len(fit.columns)].any()
    np.testing.assert_allclose(precision[len(fit.columns) :], (0.3 * fit.values[fit.columns.index("fc2")]) ** -2)


def test_what_a_curve_may_change_is_uncertain():
    """Where the loaded run shows nothing of a friction curve, its coefficients are as uncertain as they may change."""
    draws = Draws("kr15")
    fit = armid.identify(draws.robot, dataset(draws.robot, draws.arm_motion, draws.arm_torque + 0.0))
    found = solve_jointly(fit, LoadedProblem(fit, [draws.loaded()]))
    expected = curve_precision(fit, found.columns)
    change = np.sqrt(np.diag(found.covariance)[10:] * expected)
    assert 0.5 < change[expected > 0.0].max() < 1.1


def test_nothing_and_less_than_nothing():
    """An empty hand is called that; an arm that has lost a tool is told so."""
    draws = Draws("kr15")
    fit = draws.fit()
    bare = torque(draws.robot, draws.motion) + draws.noise * draws.rng.normal(size=draws.torque.shape)
    empty = identify_payload(fit, dataset(draws.robot, draws.motion, bare))
    assert not empty.good
    assert "no payload is seen" in str(empty.reasons[0])
    assert "not determined" in empty.summary()
    with_tool = replace(draws.robot, virtual=replace(draws.robot.virtual, payload=BODY))
    tool = Draws("kr15")
    tool.arm_torque = torque(with_tool, tool.arm_motion, BODY)
    lost = identify_payload(tool.fit(), dataset(draws.robot, draws.motion, bare))
    assert "was a tool taken off" in str(lost.reasons[0])
    assert impossibility(lost.parameters) is None


def test_a_body_that_another_link_carries():
    """Moved with the last link, it would make an error where there was none: that is no good payload."""
    draws = Draws("powerball")
    inertia = draws.robot.virtual.inertia.copy()
    inertia[-2] += from_com(2.0, [0.1, 0.1, 0.0], 0.02 * np.eye(3))
    loaded = replace(draws.robot, virtual=replace(draws.robot.virtual, inertia=inertia))
    tau = torque(loaded, draws.motion) + draws.noise * draws.rng.normal(size=draws.torque.shape)
    found = identify_payload(draws.fit(), dataset(draws.robot, draws.motion, tau))
    assert not found.good
    assert any("another link carries it" in str(reason) for reason in found.reasons)


def test_verdict_by_requirement_and_reference():
    """Good by default, poor where more is asked than the data give, or where the reference is another body."""
    draws = Draws("kr15")
    fit, data = draws.fit(), draws.loaded()
    right = identify_payload(fit, data, reference=BODY)
    assert right.good
    assert len(right.reference) == 10
    strict = identify_payload(fit, data, requirement=Requirement(mass=1e-4, com_m=1e-6))
    assert not strict.good
    assert any("mass" in reason for reason in map(str, strict.reasons))
    other = identify_payload(fit, data, reference={"m": 6.0, "c_x": 0.03})
    assert [row.within_2_sigma for row in other.reference] == [False, True]
    assert any("from its reference" in reason for reason in map(str, other.reasons))
    near = identify_payload(fit, data, reference={"m": right.mass + 2.5 * right.quantity("m").sigma})
    assert not near.good  # within 5 % of the mass, but outside of the stated interval


def test_logs_that_cannot_be_used():
    """The arm's own training data, another arm's log, no log, a scale that makes no sense."""
    draws = Draws("kr15")
    training = dataset(draws.robot, draws.arm_motion, draws.arm_torque)
    from armid.estimation.least_squares import WeightedLeastSquares

    fit = WeightedLeastSquares().fit(draws.robot, training)
    with pytest.raises(ArmidError, match="this very log"):
        identify_payload(fit, training)
    info = LogInfo(draws.robot.joint_names, "joint torque", rate_hz=RATE_HZ, robot="pa10")
    log = Log(training.time, {"position": draws.motion.q, "effort": draws.torque}, info)
    with pytest.raises(ArmidError, match="is 'pa10', not 'kr15'"):
        identify_payload(fit, log)
    with pytest.raises(ArmidError, match="no log"):
        identify_payload(fit, [])
    with pytest.raises(ArmidError, match="scale"):
        identify_payload(fit, draws.loaded(), gain=2.0)
    with pytest.raises(ArmidError, match="above zero"):
        Requirement(mass=0.0)


def test_saved_and_loaded(tmp_path):
    """Everything but the series comes back, infinite intervals included; damaged files are refused in a sentence."""
    draws = Draws("kr15")
    fit = draws.fit()
    bare = torque(draws.robot, draws.motion) + draws.noise * draws.rng.normal(size=draws.torque.shape)
    for data in (draws.loaded(), dataset(draws.robot, draws.motion, bare)):
        found = identify_payload(fit, data, reference=BODY)
        found.save(tmp_path / "payload.json")
        again = load_payload(tmp_path / "payload.json")
        assert again.to_data() == found.to_data()
        assert again.summary() == found.summary()
    (tmp_path / "no.json").write_text("{")
    (tmp_path / "other.json").write_text('{"format": "armid fit 1"}')
    (tmp_path / "damaged.json").write_text('{"format": "armid payload 1"}')
    for name in ("no", "other", "damaged"):
        with pytest.raises(ArmidError, match=name):
            load_payload(tmp_path / f"{name}.json")
