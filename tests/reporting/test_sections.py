"""What the sections show, against formulas that the report does not use."""

import re
from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.estimation import identify
from armid.notes import as_note
from armid.reporting import Evidence, build
from armid.reporting.sections.friction import curve, friction
from armid.reporting.sections.motion import stick_figure
from armid.reporting.sections.parameters import ellipsoid
from armid.reporting.sections.signals import _spectrum
from armid.reporting.sections.torque import row_seconds
from armid.reporting.sections.verdict import objections
from armid.robot.inertia import from_com
from armid.signals.doctor import examine
from armid.signals.pipeline import process
from tests.reporting import arms
from tests.reporting.arms import LINK


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Everything."""
    return arms.evidence(tmp_path_factory.mktemp("report"))


def section(evidence, name):
    """One section of the report."""
    return next(s for s in build(evidence).sections if s.name == name)


def trace(evidence, name, role, block=0, panel=(0, 0)):
    """Points of the first trace with a role."""
    (figure, *_) = section(evidence, name).figures
    traces = figure.blocks[block].panels[panel[0]][panel[1]].traces
    found = next(t for t in traces if t["role"] == role and "band" not in t and "x" in t)
    return np.array(found["x"], dtype=float), np.array(found["y"], dtype=float)


def test_reading_order(whole):
    """All sections are there, in the order of the procedure, and each has its own sentence."""
    sections = build(whole).sections
    assert [s.name for s in sections] == [
        "verdict", "torque", "errors", "residuals", "friction", "parameters", "conditioning", "links", "excitation",
        "replay", "signals", "payload", "tracking", "exports", "remarks",
    ]  # fmt: skip
    assert not any(s.empty for s in sections)
    sentences = [s.sentence for s in sections]
    assert len(set(sentences)) == len(sentences)
    assert all(s.endswith(".") for s in sentences)


def test_only_a_fit(whole):
    """Sections that have no data say what would fill them, or are left out; none breaks."""
    sections = {s.name: s for s in build(Evidence(fit=whole.fit)).sections}
    assert {"payload", "tracking", "exports"}.isdisjoint(sections)
    for name in ("torque", "errors", "residuals", "excitation", "replay"):
        assert sections[name].empty
        assert sections[name].figures == ()
    assert "not validated" in sections["verdict"].body
    assert "--plan" in sections["excitation"].sentence


def test_torque_panels_hold_the_validation(whole):
    """Measured and predicted curves are the validation's series; the residual under them is their difference."""
    series = whole.check.series
    x, measured = trace(whole, "torque", "measured")
    _, predicted = trace(whole, "torque", "predicted")
    _, residual = trace(whole, "torque", "residual", panel=(1, 0))
    size = np.abs(series.measured[:, 0]).max()
    assert np.allclose(measured, series.measured[:, 0], atol=1e-4 * size)
    assert np.allclose(residual, measured - predicted, atol=3e-4 * size)
    assert x[0] == 0.0


def test_residual_has_the_scale_of_its_torque(whole):
    """As many N m per pixel in both panels, on the joint's own scale and on the common one."""
    (figure,) = section(whole, "torque").figures
    for block in figure.blocks:
        upper, lower = block.panels[0][0], block.panels[1][0]
        for name, heights in (("y_range", block.heights), ("same_range", block.same_heights)):
            ranges = [getattr(panel, name) for panel in (upper, lower)]
            scales = [(high - low) / height for (low, high), height in zip(ranges, heights, strict=True)]
            assert scales[0] == pytest.approx(scales[1])
    same = {tuple(block.panels[0][0].same_range) for block in figure.blocks}
    assert len(same) == 1


def test_nominal_torque_needs_nominal_inertia_and_the_log(whole):
    """The grey line is worse than the blue one where the nominal inertia is wrong, and absent without data for it."""
    _, measured = trace(whole, "torque", "measured", block=1)
    _, nominal = trace(whole, "torque", "nominal", block=1)
    _, predicted = trace(whole, "torque", "predicted", block=1)
    assert np.std(nominal - measured) > 3.0 * np.std(predicted - measured)
    without = replace(whole, logs=())
    assert "nominal" not in section(without, "torque").figures[0].legend
    assert "--log" in section(without, "torque").body


def test_friction_curve_is_the_law(whole):
    """fv v + fc sign(v) + fo with the fit's own coefficients, and its interval from the covariance."""
    fit = whole.fit
    value = dict(zip(fit.columns, fit.values, strict=True))
    found = curve(fit, 1, 2.0)
    v = found.velocity
    assert np.allclose(found.torque, value["fv2"] * v + value["fc2"] * np.sign(v) + value["fo2"])
    rows = [fit.columns.index(name) for name in ("fv2", "fc2", "fo2")]
    shape = np.column_stack([v, np.sign(v), np.ones_like(v)])
    variance = np.einsum("ti,ij,tj->t", shape, fit.covariance[np.ix_(rows, rows)], shape)
    assert np.allclose(found.reach, 1.96 * np.sqrt(variance))
    assert np.interp(1.0, v, found.torque) == pytest.approx(1.0 + 1.5 - 0.2, abs=0.1)  # the virtual truth


def test_friction_that_changes_sides_late_is_named(whole):
    """With the joint and its lag; not where there is none."""
    lagging = replace(whole, fit=replace(whole.fit, friction_lag_s=np.array([0.0, 0.012])))
    remark = "changes sides up to 12\xa0ms (joint2) after"
    assert any(remark in part for part in friction(lagging).parts if isinstance(part, str))
    assert not any("changes sides" in part for part in friction(whole).parts if isinstance(part, str))


def test_ellipsoid_of_a_solid_body():
    """An even ellipsoid with semi-axes a, b, c has the moments m (b² + c²) / 5 and so on."""
    axes, mass, centre = np.array([0.1, 0.2, 0.3]), 4.0, np.array([0.05, -0.1, 0.2])
    squares = axes**2
    moments = mass / 5.0 * np.array([squares[1] + squares[2], squares[0] + squares[2], squares[0] + squares[1]])
    found = ellipsoid(from_com(mass, centre, np.diag(moments)))
    assert np.allclose(found[0], centre)
    assert np.allclose(found[1], np.diag(squares))
    assert ellipsoid(np.zeros(10)) is None


def test_stick_figure_follows_the_arm(whole):
    """The second joint of a planar arm is at 0.5 (cos q, sin q), and links join what they should."""
    q = np.array([[0.3, 0.0], [-1.0, 0.7]])
    arm = stick_figure(whole.fit.robot, q)
    assert np.allclose(arm.points[:, arm.tool], 0.5 * np.column_stack([np.cos(q[:, 0]), np.sin(q[:, 0]), 0 * q[:, 0]]))
    assert len(arm.axes) == 2


def test_autocorrelation_has_its_time(whole):
    """Lags are in seconds: the rows of the validation are one sample apart."""
    step = float(np.median(np.diff(whole.check.series.time)))
    assert row_seconds(whole.check.residuals[0]) == pytest.approx(step)


def test_spectrum_of_a_sine():
    """Amplitude 0.7 at 2 Hz."""
    t = np.arange(4000) / 100.0
    frequency, amplitude = _spectrum(0.7 * np.sin(2 * np.pi * 2.0 * t)[:, None], 100.0)
    assert amplitude.max() == pytest.approx(0.7, rel=0.01)
    assert frequency[np.argmax(amplitude[:, 0])] == pytest.approx(2.0, rel=0.03)


def test_excitation_shows_the_certificate(whole):
    """Each margin of the plan is in the table, and curves stay inside the red lines."""
    found = section(whole, "excitation")
    for margin in whole.plan.certificate.margins:
        assert margin.text in found.body
        assert margin.guarantee in found.body
    velocity = found.figures[0].blocks[0].panels[0][1]
    limits = [t["level"] for t in velocity.traces if "level" in t]
    assert sorted(limits) == [-3.0, 3.0]
    assert np.abs(velocity.traces[0]["y"]).max() <= 3.0


def test_tracking_compares_with_pid(whole):
    """Computed torque against PID with five times its error, the nominal model second; what broke off is said."""
    found = section(whole, "tracking")
    assert found.sentence == (
        "Computed torque, identified model: mean Cartesian error 2.00 mm on circle, against 10.0 mm (5.0×) with PID "
        "and 25.0 mm (12×) with computed torque, nominal model."
    )
    assert "broken off" in found.body
    assert section(replace(whole, tracking={"path": "line"}), "tracking").sentence


@pytest.mark.parametrize(
    ("ratios", "words"),
    [
        ((0.9, 0.98), "Every joint is predicted to within its noise; joint2 comes last with 0.98×."),
        ((0.9, 1.09), "Every joint is predicted to within 1.1× its noise; joint2 comes last with 1.09×."),
        ((0.9, 3.21), "1 of 2 joints is predicted to within 1.1× the noise; joint2 is 3.2× the noise;"),
    ],
)
def test_errors_say_what_the_numbers_say(whole, ratios, words):
    """Within the noise means at most 1.00×; up to 1.1× is said with that number."""
    joints = tuple(replace(j, noise_ratio=ratio) for j, ratio in zip(whole.check.joints, ratios, strict=True))
    assert section(replace(whole, check=replace(whole.check, joints=joints)), "errors").sentence.startswith(words)


def test_files_that_were_not_kept_are_named(whole):
    """A refused file stands in the table with its reason, and is not counted as written."""
    refused = {"file": "a.h", "format": "c", "reason": "a.h: was not kept, because cc finds another torque"}
    found = section(replace(whole, exports=(*whole.exports, refused)), "exports")
    assert found.sentence.endswith("of its range; a.h did not and was not kept.")
    assert "as urdf;" in found.sentence
    assert "cc finds another torque" in found.body


def test_a_poor_verdict_is_said_first(whole):
    """Where the validation says poor, so does the page, with reasons and advice among the warnings."""
    poor = replace(
        whole.check, verdict="poor", reasons=(as_note("Joint joint1: too large."),), advice=(as_note("Warm it up."),)
    )
    bad = replace(whole, check=poor)
    assert 'class="stamp poor"' in section(bad, "verdict").body
    assert section(bad, "verdict").sentence == "Do not trust this model of planar: Joint joint1: too large."
    assert objections(bad)[0] == "Joint joint1: too large."
    assert "Warm it up." in section(bad, "verdict").body
    seen = replace(whole, check=replace(whole.check, same_as_training=True))
    assert "proves nothing" in section(seen, "verdict").sentence


def first_sentence(evidence):
    """What a reader of the page reads first."""
    return build(evidence).sections[0].sentence


def test_first_screen_of_a_good_arm(whole):
    """Says that it can be trusted, where, and how large the error is; nothing counts against it."""
    words = first_sentence(whole)
    assert words.startswith("You can trust this model of planar at the speeds and postures of its data: ")
    assert f"{100 * whole.check.relative_error_moving:.2f} % of the torque" in words
    assert "virtual" not in words
    assert "<details><summary>Provenance</summary>" in section(whole, "verdict").body


def test_first_screen_of_a_bad_log(whole):
    """A torque of the wrong sign: do not trust, which joint, and that the log doctor objects."""
    robot, log = whole.fit.robot, whole.logs[0]
    torque = log["effort"] * np.array([1.0, -1.0])
    torque[100::300, 0] += 40.0
    bad = log.with_channels({"effort": torque}, source="monday.csv")
    fit = identify(robot, [process(bad, robot=robot)], method="feasible", friction="linear")
    seen = {"logs": {"monday.csv": examine(bad, robot).as_data()}}
    found = Evidence(fit=fit, check=armid.validate(fit, whole.logs[1]), logs=(bad,), inspection=seen)
    assert re.match(r"Do not trust this model of planar: joint\d: the error is \d", first_sentence(found))
    assert "the log doctor objects to its logs" in first_sentence(found)
    assert any(words.startswith("monday.csv") for words in objections(found))


def test_first_screen_of_an_implausible_arm(whole):
    """A link of 259 kg: of use for torque, and the first sentence says why for nothing else."""
    heavy = arms.link_values(2, from_com(259.0, [0.0, 0.0, 0.0], np.diag([5.0, 5.0, 5.0])))
    fit = replace(whole.fit, standard_parameters={**whole.fit.standard_parameters, **heavy})
    found = Evidence(fit=fit, check=armid.validate(fit, whole.logs[1]))
    words = first_sentence(found)
    assert words.startswith("Trust this model of planar only for torque prediction: the links weigh 261 kg together")
    unproved = objections(Evidence(fit=fit))
    assert any(words.startswith("The links weigh 261 kg") for words in unproved)


def test_first_screen_of_an_impossible_arm(whole):
    """What no arm can have is said first, whatever the torque."""
    found = replace(whole, audit={"possible": False, "certificates": ["Link 2 has a negative mass."]})
    assert "only for torque prediction: the parameters are not physically consistent." in first_sentence(found)
    assert objections(found)[:2] == ["The parameters are not physically consistent.", "Link 2 has a negative mass."]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """A fit from the virtual robot's own log, which has been written and read again."""
    folder = tmp_path_factory.mktemp("virtual")
    robot = replace(arms.planar(folder), nominal_inertia=np.array([LINK, 1.3 * LINK]))
    series = armid.Fourier(harmonics=3, period=8.0)
    plans = [armid.design(robot, series, starts=1, seed=seed) for seed in (0, 1)]
    logs = [armid.VirtualRobot(robot, rate_hz=100.0).run(plan, periods=2) for plan in plans]
    armid.write_log(logs[0], folder / "log.csv")
    fit = identify(robot, [process(armid.read_log(folder / "log.csv"), robot=robot)], method="feasible")
    return Evidence(fit=fit, check=armid.validate(fit, logs[1]))


def test_first_screen_of_a_virtual_arm(simulated):
    """Its first sentence calls it virtual, and counts how many true parameters the intervals hold."""
    words = first_sentence(simulated)
    assert "of a virtual arm (simulated, not measured)" in words
    assert "virtual arm</span>" in section(simulated, "verdict").body


def test_what_a_description_neglects_is_named(simulated):
    """A parameter that is taken as zero, but that the virtual arm has, is among what counts against the model."""
    robot = replace(simulated.fit.robot, zero=frozenset({"Ixx2"}))
    told = objections(replace(simulated, fit=replace(simulated.fit, robot=robot)))
    assert any(words.startswith("The description takes Ixx2 as zero, but the virtual arm has them") for words in told)
    assert not any("virtual arm has" in words for words in objections(simulated))


def test_estimates_of_a_virtual_arm_stand_beside_the_truth(simulated):
    """The true base parameters are sums of the simulated links' own; a mark in each row shows where they lie."""
    rows = {row.name: row.reference for row in simulated.beside_truth}
    assert rows["Izz2"] == pytest.approx(1.3 * LINK[9])
    assert rows["mx2"] == pytest.approx(1.3 * LINK[1])
    assert section(simulated, "parameters").body.count('class="beside"') == len(rows)
    assert "nominal" in section(simulated, "friction").figures[0].legend


def test_the_log_doctor_is_heard(whole):
    """Warnings and errors of an inspection are listed, mere facts are not."""
    findings = [
        {"severity": "warning", "joint": "joint1", "what": "Spikes.", "advice": "Remove them."},
        {"severity": "info", "joint": None, "what": "All is well.", "advice": ""},
    ]
    told = objections(replace(whole, inspection={"logs": {"run.csv": {"findings": findings}}}))
    assert "run.csv, joint1: Spikes. Remove them." in told
    assert not any("All is well" in words for words in told)


def test_a_link_larger_than_the_arm_is_marked(whole):
    """Inertia that only a huge body could have is pointed out; a link of the arm's own size is not."""
    huge = {
        **whole.fit.standard_parameters,
        **arms.link_values(2, from_com(0.1, [0.0, 0.0, 0.0], np.diag([5.0, 5.0, 5.0]))),
    }
    found = section(replace(whole, fit=replace(whole.fit, standard_parameters=huge)), "links")
    assert "a radius of gyration of" in found.body
    assert found.body.count('class="marked"') == 1
    assert "radius of gyration of" not in section(whole, "links").body


def test_sliding_and_resting_joints(tmp_path):
    """Forces are in N and speeds in m/s; a joint that never moves has no NRMS, and breaks nothing."""
    path = tmp_path / "slider.yaml"
    path.write_text(
        "name: slider\nkinematics:\n  convention: modified-dh\n  rows: [[0, 0, 0, 0, prismatic], [0, 0.5, 0, 0]]\n"
        "gravity: [0, -9.81, 0]\nfriction: {law: coulomb-viscous, offset: true}\n"
    )
    robot = armid.load_robot(path)
    logs = [arms.log_of(robot, 1), arms.log_of(robot, 2, rest=1)]
    fit = identify(robot, [process(logs[0], robot=robot)], method="wls", friction="linear")
    check = armid.validate(fit, logs[1])
    assert np.isnan(check.joints[1].nrms_moving)
    found = {s.name: s for s in build(Evidence(fit=fit, check=check, logs=tuple(logs))).sections}
    assert found["torque"].figures[0].blocks[0].panels[0][0].y_title == "N"
    assert found["residuals"].figures[0].blocks[0].panels[0][1].x_title == "velocity [m/s]"
    assert "N or N m" in found["errors"].body
    assert found["links"].empty
