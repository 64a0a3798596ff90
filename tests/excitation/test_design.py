"""The design: better than chance, inside all limits, repeatable, and honest when it cannot be done."""

import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.dynamics.sensitivity import Sensitivity
from armid.errors import ArmidError, ArmidWarning
from armid.excitation import (
    ConditionAndSigma,
    ConditionNumber,
    DOptimal,
    Floor,
    Fourier,
    FourierSeries,
    KeepOutBox,
    ToolBox,
    ToolSpeed,
    TorqueLimit,
    design,
    link_capsules,
    load_plan,
)
from armid.excitation.certificate import Margin, certify
from armid.excitation.constraints import prior_values
from armid.excitation.design import design_problem, gathered_information
from armid.excitation.fourier import FourierVariables
from armid.excitation.problem import DesignProblem, _Best, _slsqp
from armid.excitation.search import _perturbed, random_start
from tests.excitation.replay import replay


@pytest.fixture(scope="module")
def robot():
    return armid.load_robot("ir361")


@pytest.fixture(scope="module")
def plan(robot):
    return design(robot, starts=2, workers=1)


def problem_for(robot, constraints=(), criterion=None, **changes):
    model = armid.Model(robot)
    n = robot.n_joints
    middle = 0.5 * (robot.limits.lower + robot.limits.upper)
    variables = FourierVariables(0.1, (1, 2, 3), tuple(range(n)), middle)
    names = model.base.kept
    given = np.zeros((len(names),) * 2)
    kind = criterion or DOptimal()
    return DesignProblem(model, names, variables, robot.limits, kind, np.ones(n), given, constraints, **changes)


def random_x(problem, seed, size=0.1):
    rng = np.random.default_rng(seed)
    return size * rng.normal(size=problem.variables.count) + np.repeat(
        np.eye(problem.variables.per_joint)[:1], len(problem.variables.moving), axis=0
    ).ravel() * np.repeat(problem.variables.posture[list(problem.variables.moving)], problem.variables.per_joint)


@pytest.mark.parametrize("name", ["er16", "powerball"])
def test_gradient_of_the_cost(name):
    """Cost of a trajectory against central differences in its coefficients, to 1e-6."""
    problem = problem_for(armid.load_robot(name))
    x = random_x(problem, 0, 0.3)
    cost, gradient = problem.cost_and_gradient(x)
    assert cost == pytest.approx(problem.criterion.cost(problem.information(x), problem.samples)[0])
    rng = np.random.default_rng(1)
    for _ in range(4):
        d = rng.normal(size=x.size)
        slope = (problem.cost_and_gradient(x + 1e-6 * d)[0] - problem.cost_and_gradient(x - 1e-6 * d)[0]) / 2e-6
        assert gradient @ d == pytest.approx(slope, rel=2e-6)


def constraints_of(robot):
    model = armid.Model(robot)
    low, high = np.array([-0.4, -0.5, 0.1]), np.array([0.5, 0.6, 0.9])
    return {
        "torque": TorqueLimit(model, prior_values(model), robot.limits.torque),
        "box": ToolBox(robot, low, high),
        "keep-out": KeepOutBox(robot, low, high, clearance=0.05),
        "speed": ToolSpeed(robot, link_capsules(robot), 2.0),
        "floor": Floor(robot, link_capsules(robot), -0.5),
    }


@pytest.mark.parametrize("name", ["torque", "box", "keep-out", "speed", "floor"])
@pytest.mark.parametrize("arm", ["pa10", "ir361"])
def test_gradient_of_nonlinear_constraints(arm, name):
    """Every nonlinear constraint's Jacobian against central differences, to 1e-6 of its size."""
    robot = armid.load_robot(arm)
    problem = problem_for(robot, (constraints_of(robot)[name],))
    x = random_x(problem, 2)
    jacobian = problem.nonlinear_jacobian(x)
    rng = np.random.default_rng(3)
    for _ in range(3):
        d = rng.normal(size=x.size)
        slope = (problem.nonlinear_values(x + 1e-6 * d) - problem.nonlinear_values(x - 1e-6 * d)) / 2e-6
        assert np.abs(jacobian @ d - slope).max() < 2e-6 * max(1.0, np.abs(slope).max())


def test_plan_is_certified_and_described(plan, robot):
    """All limits hold on a fine grid, and the reported figures are those of the sampled trajectory."""
    assert plan.certified
    _, motion = plan.trajectory.sample(10_000.0)
    limits = robot.limits
    assert np.all(motion.q >= limits.lower)
    assert np.all(motion.q <= limits.upper)
    assert np.all(np.abs(motion.qd) <= limits.velocity)
    assert np.all(np.abs(motion.qdd) <= limits.acceleration)
    model = armid.Model(robot)
    _, motion = plan.trajectory.sample(plan.rate_hz)
    W = model.regressor(*motion, plan.parameters).reshape(-1, len(plan.parameters))
    assert plan.conditioning.condition == pytest.approx(np.linalg.cond(W / np.linalg.norm(W, axis=0)), rel=0.05)
    assert plan.value == pytest.approx(-np.linalg.slogdet(W.T @ W / len(motion.q))[1], abs=0.5)


def test_designed_beats_random(plan, robot):
    """D-optimal information exceeds that of 50 random feasible trajectories of the same energy, by a wide margin."""
    rng = np.random.default_rng(5)
    model = armid.Model(robot)
    sensitivity = Sensitivity(model, plan.parameters)
    _, motion = plan.trajectory.sample(51.2)
    energy = np.mean(motion.qd**2, axis=0)
    best = -np.inf
    for _ in range(50):
        series = FourierSeries(
            0.1, (1, 2, 3, 4, 5), *rng.normal(size=(2, 3, 5)) / np.arange(1, 6), plan.trajectory.offset
        )
        _, free = series.sample(51.2)
        factor = np.sqrt(energy / np.mean(free.qd**2, axis=0))[:, None]
        series = replace(series, sine=factor * series.sine, cosine=factor * series.cosine)
        shrink = min(1.0, *(1.0 / (1.0 - min(0.0, m.margin)) for m in certify(series, robot.limits).margins))
        series = replace(series, sine=shrink * series.sine, cosine=shrink * series.cosine)
        _, free = series.sample(51.2)
        best = max(best, np.linalg.slogdet(sensitivity.information(free))[1])
    assert -plan.value > best + 5.0


def test_same_seed_same_plan(robot, plan):
    """One seed gives one plan, whether the starts run here or in other processes."""
    again = design(robot, starts=2, workers=2)
    assert np.array_equal(again.trajectory.sine, plan.trajectory.sine)
    other = design(robot, starts=1, workers=1, seed=7)
    assert not np.array_equal(other.trajectory.sine, plan.trajectory.sine)


def test_plan_survives_its_file(plan, tmp_path):
    """Saved and loaded, a plan is the same; other files are refused in a sentence."""
    plan.save(tmp_path / "plan.json")
    loaded = load_plan(tmp_path / "plan.json")
    assert loaded.to_data() == plan.to_data()
    assert loaded.summary() == plan.summary()
    for text in ("{}", "[1]", "no json", '{"format": "other"}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(ArmidError, match=r"bad\.json"):
            load_plan(tmp_path / "bad.json")


def test_at_rest_and_condition(robot):
    """The trajectory can start at rest; the condition criterion starts from the D-optimal one and improves on it."""
    resting = design(robot, starts=1, workers=1, at_rest=True)
    start = resting.trajectory.at([0.0])
    assert np.abs(start.qd).max() < 1e-5
    assert np.abs(start.qdd).max() < 1e-5
    sharp = design(robot, starts=1, workers=1, criterion=ConditionNumber(), iterations=150)
    assert sharp.conditioning.condition < resting.conditioning.condition


@pytest.mark.parametrize("seed", range(4))
def test_starts_at_rest_move(robot, seed):
    """Random starts and hops from them rest at the beginning, but for rounding, and use the limits all the same."""
    problem = design_problem(robot, at_rest=True)
    start = random_start(problem, seed)
    for x in (start, _perturbed(problem, start, np.random.default_rng(seed))):
        motion = problem.variables.series(x).at(np.linspace(0.0, 10.0, 401))
        assert np.abs(motion.qd[0]).max() < 1e-12
        assert np.abs(motion.qd).max() > 0.1
        assert np.isfinite(problem.cost_and_gradient(x)[0])


def test_information_already_gathered_counts(robot, plan):
    """With knowledge about everything but one joint's friction, the design is for what is left."""
    names = plan.parameters
    known = np.diag([0.0 if name in ("fv3", "fc3") else 1e9 for name in names])
    last = design(robot, starts=3, workers=1, parameters=names, given=known)
    model = armid.Model(robot)
    wanted = [names.index("fv3"), names.index("fc3")]

    def information(p):
        _, motion = p.trajectory.sample(51.2)
        full = Sensitivity(model, names).information(motion) + known
        return np.linalg.slogdet(np.linalg.inv(np.linalg.inv(full)[np.ix_(wanted, wanted)]))[1]

    assert information(last) > information(plan)


def test_payload_plan():
    """KR 15, joints 3-6, two harmonics, flange in a box of 0.3 m: 18 parameters, scaled condition at most 8."""
    robot = armid.load_robot("kr15")
    posture = np.array([0.0, -1.0, 1.2, 0.0, 0.9, 0.0])
    flange = armid.tool_frame(robot, posture[None])[0, :3, 3]
    made = design(
        robot,
        Fourier((1, 20), 30.0),
        parameters="payload",
        joints=(3, 4, 5, 6),
        posture=posture,
        rate_hz=1 / 0.012,
        constraints=(ToolBox(robot, flange - 0.15, flange + 0.15),),
        starts=1,
        workers=1,
    )
    assert len(made.parameters) == 18
    assert made.conditioning.condition <= 8.0
    assert not made.trajectory.sine[:2].any()
    assert made.certified
    _, motion = made.trajectory.sample(1 / 0.012)
    assert np.abs(armid.tool_frame(robot, motion.q)[:, :3, 3] - flange).max() <= 0.15


def test_torque_and_box_are_kept_by_mujoco():
    """A plan with torque and tool box active keeps both, checked with MuJoCo's inverse dynamics and kinematics."""
    robot = armid.load_robot("er16")
    model = armid.Model(robot)
    free = design(robot, starts=1, workers=1)
    _, motion = free.trajectory.sample(100.0)
    values = prior_values(model)
    peak = np.abs(model.inverse_dynamics(*motion, values)).max(axis=0)
    tool = armid.tool_frame(robot, motion.q)[:, :3, 3]
    middle = 0.5 * (tool.min(axis=0) + tool.max(axis=0))
    half = 0.45 * (tool.max(axis=0) - tool.min(axis=0))
    constraints = (
        TorqueLimit(model, values, 0.8 * peak, share=1.0),
        ToolBox(robot, middle - half - 0.05, middle + half + 0.05),
    )
    made = design(robot, starts=1, workers=1, constraints=constraints, iterations=150)
    assert made.certified
    _, motion = made.trajectory.sample(500.0)
    torque, tip, _ = replay(robot, values, motion)
    assert np.all(np.abs(torque) <= 0.8 * peak)
    assert np.abs(torque).max(axis=0) == pytest.approx(0.8 * peak, rel=0.5)
    assert np.all(tip >= middle - half - 0.05 - 1e-9)
    assert np.all(tip <= middle + half + 0.05 + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_every_start_is_feasible(robot, seed):
    """A box that the arm in the middle of its limits is far outside of: the search moves to where there is room."""
    corner = armid.tool_frame(robot, np.array([[1.5, -2.0, -1.5]]))[0, :3, 3]
    box = ToolBox(robot, corner - 0.25, corner + 0.25)
    middle = 0.5 * (robot.limits.lower + robot.limits.upper)
    assert np.any(np.abs(armid.tool_frame(robot, middle[None])[0, :3, 3] - corner) > 0.3)
    problem = problem_for(robot, (box,))
    assert problem.violation(random_start(problem, seed)) == 0.0
    made = design(robot, starts=1, workers=1, constraints=(box,), seed=seed, iterations=80)
    assert made.certified
    _, motion = made.trajectory.sample(1000.0)
    assert np.abs(armid.tool_frame(robot, motion.q)[:, :3, 3] - corner).max() <= 0.25


def test_scipy_fallback_finds_a_feasible_trajectory(robot):
    """Without IPOPT the search still ends inside the limits and better than it began."""
    problem = problem_for(robot)
    start = random_x(problem, 4, 0.2)
    best = _Best(problem, np.inf)
    _slsqp(best, start, 15)
    assert best.x is not None
    assert best.cost < problem.cost_and_gradient(start)[0]
    assert problem.violation(best.x) < 1e-4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": Fourier(5, 10.001)}, "whole number"),
        ({"shape": Fourier(800, 10.0)}, "half the rate"),
        ({"resonance_hz": 0.4}, "resonance"),
        ({"posture": [9.0, 0.0, 0.0]}, "posture of joint 1"),
        ({"posture": [0.0]}, "3 are needed"),
        ({"joints": [4]}, "from 1 to 3"),
        ({"parameters": "inertal"}, "did you mean 'inertial'"),
        ({"noise": [1.0, 1.0]}, "noise has 2 numbers; 3 are needed"),
        ({"noise": [1.0, 0.0, 1.0]}, "positive and finite"),
        ({"resonance_hz": np.nan}, "resonance_hz is nan"),
        ({"joints": [3]}, "cannot tell Izz1, mx2, .* …; choose other parameters"),
        ({"parameters": ["m1", "fv1"]}, "cannot tell m1;"),
        ({"parameters": ["Izz1", "Ixx2", "Iyy2", "fv1"]}, "cannot tell Izz1, Ixx2, Iyy2;"),
    ],
)
def test_bad_input(robot, options, message):
    """Each mistake gets a sentence with the way out."""
    options = {"shape": Fourier(), **options}
    shape = options.pop("shape")
    with pytest.raises(ArmidError, match=message):
        design(robot, shape, starts=1, workers=1, **options)


@pytest.mark.parametrize(
    ("search", "message"),
    [({"seed": -1}, "seed is -1"), ({"starts": 0}, "starts is 0"), ({"budget": np.nan}, "budget is nan s")],
)
def test_bad_search(robot, search, message):
    """Options of the search are looked at one by one."""
    with pytest.raises(ArmidError, match=message):
        design(robot, **search)


def test_many_joints_are_advised_against(robot):
    """Before the long work, which here ends at once as the arm has fewer."""
    with pytest.warns(ArmidWarning, match="15 joints move.*--joints"), pytest.raises(ArmidError, match="from 1 to"):
        armid.design(robot, Fourier(), joints=range(1, 16))


def test_noise_weights_the_information(robot):
    """The reported log det is that of the regressor with each joint's rows divided by its noise."""
    noise = np.array([10.0, 0.1, 1.0])
    made = design(robot, starts=1, workers=1, noise=noise)
    _, motion = made.trajectory.sample(made.rate_hz)
    W = armid.Model(robot).regressor(*motion, made.parameters) / noise[:, None]
    W = W.reshape(-1, len(made.parameters))
    assert made.conditioning.log_det == pytest.approx(np.linalg.slogdet(W.T @ W / len(motion.q))[1], abs=0.1)
    assert made.options["noise"] == noise.tolist()


def test_search_and_plan_agree_on_the_cost(robot):
    """Both report one evaluation, also of criteria in which the number of samples counts."""
    seen = []
    raw = {"criterion": ConditionAndSigma(), "checks": None}
    made = design(robot, starts=1, workers=1, progress=seen.append, iterations=60, **raw)
    assert made.value == pytest.approx(seen[-1].cost, rel=1e-9)


def test_gathered_information_counts_samples_and_joints(robot, plan):
    """One period of an earlier plan counts with all its samples, and only with the joints that were measured."""
    shape = Fourier(5, 20.0)
    names = plan.parameters
    found = gathered_information(plan, robot, shape, rate_hz=300.0, noise=[1.0, 2.0, 4.0])
    _, motion = plan.trajectory.sample(plan.rate_hz)
    W = armid.Model(robot).regressor(*motion, names) / np.array([1.0, 2.0, 4.0])[:, None]
    W = W.reshape(-1, len(names))
    assert np.allclose(found, W.T @ W / (20.0 * 300.0), rtol=1e-9, atol=1e-9 * np.abs(found).max())
    alone = replace(plan, options={**plan.options, "joints": [1]})
    assert gathered_information(alone, robot, shape)[names.index("fv3"), names.index("fv3")] == 0.0


def test_progress_tells_violations(robot):
    """While nothing feasible was found, the smallest violation is told; then cost, condition number and 0."""
    seen = []
    design(robot, starts=2, workers=1, progress=seen.append)
    assert [(now.done, now.total, now.violation) for now in seen] == [(1, 2, 0.0), (2, 2, 0.0)]
    assert seen[0].cost >= seen[1].cost
    assert seen[1].condition > 1.0
    seen.clear()
    box = ToolBox(robot, np.array([5.0, 5.0, 5.0]), np.array([6.0, 6.0, 6.0]))
    with pytest.raises(ArmidError, match="tool box"):
        design(robot, starts=1, workers=1, constraints=(box,), iterations=30, progress=seen.append)
    assert np.isinf(seen[0].cost)
    assert 3.0 < seen[0].violation < 6.0


@pytest.fixture
def ctrl_c():
    """SIGINT interrupts, even where the shell that started the tests has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("workers", [1, 2])
def test_interruption_keeps_the_best(robot, workers):
    """Ctrl-C during a long search, in this process or in others, ends it soon with a certified plan."""
    seen = []

    def interrupt(now):
        seen.append(now)
        if workers == 1:
            raise KeyboardInterrupt
        if len(seen) == 1:
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    made = design(robot, starts=200, workers=workers, progress=interrupt, keep_on_interrupt=True)
    assert made.certified
    assert 1 <= len(seen) < 100
    assert made.options["stopped"] == f"after {seen[-1].done} of 205 starts"
    assert f"the search was stopped after {seen[-1].done} of 205 starts" in made.summary()


@pytest.mark.parametrize(("keep", "after"), [(False, 1), (True, 0)])
def test_interruption_is_the_callers(robot, monkeypatch, keep, after):
    """Ctrl-C is raised where nobody asked to keep a plan, and where no start has ended."""
    import armid.excitation.search as module

    real, calls = module.solve, []

    def counted(*arguments, **options):
        calls.append(1)
        if len(calls) > after:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(module, "solve", counted)
    with pytest.raises(KeyboardInterrupt):
        design(robot, starts=5, workers=1, keep_on_interrupt=keep)
    assert len(calls) == after + 1


def test_progress_and_plan_tell_the_same_figures(robot):
    """Log det and condition number of the last report are those of the plan."""
    seen = []
    made = design(robot, starts=2, workers=1, progress=seen.append)
    assert seen[-1].log_det == pytest.approx(made.conditioning.log_det, abs=0.005)
    assert seen[-1].condition == pytest.approx(made.conditioning.condition, rel=0.005)
    assert "stopped" not in made.options


def test_plans_of_any_content_can_be_saved(robot, tmp_path):
    """NumPy numbers, constraints without quantities and singular information: strict JSON, and the same again."""
    made = design(robot, starts=1, workers=1, joints=np.array([1, 2, 3]), posture=np.zeros(3) - 0.5)
    empty = Margin("self-collision", 0, np.inf, "nothing there to check", "m")
    blind = replace(made.conditioning, condition=np.inf, condition_raw=np.inf, log_det=-np.inf)
    made = replace(made, margins=(*made.margins, empty), conditioning=blind)
    made.save(tmp_path / "plan.json")
    text = (tmp_path / "plan.json").read_text()
    assert "Infinity" not in text
    loaded = load_plan(tmp_path / "plan.json")
    assert (loaded.certificate, loaded.conditioning) == (made.certificate, made.conditioning)
    assert loaded.summary() == made.summary()
    with pytest.raises(ArmidError, match="is a folder"):
        load_plan(tmp_path)


def test_missing_limits_are_named(robot):
    """Unknown limits are never guessed: the joint and the way to give them are named."""
    limits = replace(robot.limits, acceleration=np.array([1.0, np.nan, 1.0]))
    with pytest.raises(ArmidError, match=r"limits\.acceleration of joint2 is not known"):
        design(replace(robot, limits=limits), starts=1, workers=1)


def test_impossible_box_is_named(robot):
    """A tool box out of reach makes the problem infeasible, and the box is named."""
    box = ToolBox(robot, np.array([5.0, 5.0, 5.0]), np.array([6.0, 6.0, 6.0]))
    with pytest.raises(ArmidError, match="tool box"):
        design(robot, starts=1, workers=1, constraints=(box,), iterations=30)
