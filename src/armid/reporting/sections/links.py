"""The links: mass, centre of mass and inertia ellipsoids, beside the nominal ones where there are any."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from armid.arrays import Array
from armid.estimation.fit import Fit
from armid.reporting.evidence import Evidence, reach_of
from armid.reporting.html import Cell, Column, Row, paragraph, table, text
from armid.reporting.numbers import listed, short
from armid.reporting.section import Section, lacking
from armid.robot.inertia import pseudo_inertia, to_com
from armid.robot.robot import inertial_names

TITLE = "Links"
PLANES = ((0, 1, "x", "y"), (0, 2, "x", "z"), (1, 2, "y", "z"))
SIDE = 104.0  # of a picture [px of the view box]
HUGE = 2.0  # reach of a body, over that of the arm, from which it is called implausible
DECIDED = 0.5  # share of the data in a value from which it counts as decided by them


def links(evidence: Evidence) -> Section:
    """A table and ellipsoids in the links' own frames."""
    fit = evidence.fit
    if fit.standard_parameters is None:
        words = "Base parameters do not say how mass is divided among links: armid identify --method feasible does."
        return lacking("links", TITLE, words)
    bodies = [_ten(fit.standard_parameters, link) for link in range(1, fit.robot.n_joints + 1)]
    nominal = fit.robot.nominal_inertia
    body = table(_columns(nominal is not None), _rows(fit, bodies), caption="inertia of each link in its own frame")
    body += _pictures(fit, bodies)
    grey = "grey dashed: the nominal one; " if nominal is not None else ""
    body += paragraph(
        "Blue: the even ellipsoid with the identified mass and inertia, in the link’s frame, a dot at its centre of "
        f"mass; {grey}the cross is the frame’s origin, and a link’s views reach as far from it as stated. What the "
        "data do not decide is one possible body that agrees with them, not a measurement.",
        "remark",
    )
    odd = [fit.robot.joints[k].link_name for k, body in enumerate(bodies) if _oddness(fit, body)]
    if odd:
        verb = "has" if len(odd) == 1 else "have"
        body += paragraph(
            f"Marked: {listed(odd)} {verb} an inertia that only a body much larger than the arm could have. It is "
            "possible but not plausible, and torque is predicted all the same; a prior (--prior) mends it.",
            "remark",
        )
    return Section("links", TITLE, _sentence(fit, bodies), body)


def _ten(values: Mapping[str, float], link: int) -> Array:
    return np.array([float(values.get(name, 0.0)) for name in inertial_names(link)])


def _decided(fit: Fit, link: int) -> list[str] | None:
    """Parameters of a link that the data decide; None if the fit does not say."""
    shares = fit.options.get("data_share")
    if not isinstance(shares, Mapping):
        return None
    return [name for name in inertial_names(link) if float(shares.get(name) or 0.0) >= DECIDED]


def _sentence(fit: Fit, bodies: list[Array]) -> str:
    total = sum(float(body[0]) for body in bodies)
    nominal = fit.robot.nominal_inertia
    against = "" if nominal is None else f" (nominal: {short(float(nominal[:, 0].sum()))} kg)"
    if _decided(fit, 1) is None:
        return f"The links weigh {short(total)} kg together{against}."
    masses = [f"m{link}" for link in range(1, len(bodies) + 1) if f"m{link}" in (_decided(fit, link) or ())]
    known = "no link’s mass" if not masses else f"only {listed(masses)}" if len(masses) < len(bodies) else "every mass"
    verb = "are" if len(masses) > 1 and len(masses) < len(bodies) else "is"
    start = f"Motion shows most masses only in combinations: {known} {verb} decided by the data"
    return f"{start}; one possible arm that agrees with them weighs {short(total)} kg{against}."


def _columns(nominal: bool) -> list[Column]:
    columns = [Column("link", words=True), Column("mass", "kg")]
    columns += [Column("nominal", "kg", "mass in the robot's own file")] if nominal else []
    columns += [Column(f"c{axis}", "mm", f"centre of mass along {axis} of the link's frame") for axis in "xyz"]
    columns += [Column("principal moments", "g m²", "about the centre of mass, smallest first")]
    return [
        *columns,
        Column(
            "decided by the data",
            words=True,
            hint="identifiable alone with a small interval, or data that more than halve the prior's variance",
        ),
    ]


def _rows(fit: Fit, bodies: list[Array]) -> list[Row]:
    rows, nominal = [], fit.robot.nominal_inertia
    for index, body in enumerate(bodies):
        mass, centre, about = to_com(body)
        moments = np.linalg.eigvalsh(about)
        cells = [Cell(fit.robot.joints[index].link_name), Cell(short(mass), mass)]
        if nominal is not None:
            cells.append(Cell(short(float(nominal[index, 0])), float(nominal[index, 0])))
        cells += [Cell(_millimetres(float(c)) if mass > 0.0 else "–", float(c)) for c in centre]
        cells.append(Cell(" · ".join(short(1e3 * float(value), 2) for value in moments), float(moments[-1])))
        decided = _decided(fit, index + 1)
        cells.append(Cell("not stated" if decided is None else ", ".join(decided) or "none", code=bool(decided)))
        rows.append(Row(tuple(cells), _oddness(fit, body)))
    return rows


def _oddness(fit: Fit, body: Array) -> str:
    """Why a link is to be looked at: a body with its inertia would be much larger than the arm."""
    reach, arm = _reach(body), reach_of(fit.robot)
    return (
        f"a body with this inertia would reach {short(reach, 2)} m, the arm {short(arm, 2)} m"
        if reach > HUGE * arm
        else ""
    )


def _millimetres(metres: float) -> str:
    return f"{round(1e3 * metres, 1) + 0.0:.1f}".replace("-", "\N{MINUS SIGN}")


def _pictures(fit: Fit, bodies: list[Array]) -> str:
    """Three views of each link, each link at its own scale."""
    nominal = fit.robot.nominal_inertia
    parts = []
    for index, body in enumerate(bodies):
        other = None if nominal is None else np.asarray(nominal[index])
        reach = max(_reach(body), 0.0 if other is None else _reach(other))
        if reach > 0.0:
            views = "".join(_view(plane, body, other, reach) for plane in PLANES)
            name = f"{text(fit.robot.joints[index].link_name)} <small>±{text(_length(reach))}</small>"
            parts.append(f'<div class="link"><h3>{name}</h3><div class="views">{views}</div></div>')
    return f'<div class="links">{"".join(parts)}</div>'


def _length(metres: float) -> str:
    return f"{short(metres, 2)} m" if metres >= 1.0 else f"{1e3 * metres:.0f} mm"


def ellipsoid(body: Array) -> tuple[Array, Array] | None:
    """Centre [m] and shape matrix A [m^2] of the even ellipsoid (x - c)' A^-1 (x - c) <= 1 with a body's inertia."""
    mass = float(body[0])
    if not mass > 0.0:
        return None
    moments = pseudo_inertia(body)
    centre = moments[:3, 3] / mass
    shape = 5.0 * (moments[:3, :3] / mass - np.outer(centre, centre))
    return centre, shape


def _reach(body: Array) -> float:
    found = ellipsoid(body)
    if found is None:
        return 0.0
    centre, shape = found
    return float(np.max(np.abs(centre) + np.sqrt(np.maximum(np.diag(shape), 0.0))))


def _view(plane: tuple[int, int, str, str], body: Array, nominal: Array | None, reach: float) -> str:
    a, b, across, up = plane
    scale = 0.46 * SIDE / reach
    shapes = [] if nominal is None else [_ellipse(nominal, a, b, scale, "nominal")]
    shapes.append(_ellipse(body, a, b, scale, "predicted"))
    half = 0.5 * SIDE
    return (
        f'<svg viewBox="{-half:g} {-half:g} {SIDE:g} {SIDE:g}" role="img" aria-label="seen in {across} and {up}">'
        f'<path class="cross" d="M-6 0H6M0-6V6"/>{"".join(shapes)}'
        f'<text x="{half - 3:g}" y="{half - 4:g}" text-anchor="end">{across}</text>'
        f'<text x="{-half + 3:g}" y="{-half + 11:g}">{up}</text></svg>'
    )


def _ellipse(body: Array, a: int, b: int, scale: float, role: str) -> str:
    """The outline of an ellipsoid seen along an axis: the part of its shape matrix in the plane."""
    found = ellipsoid(body)
    if found is None:
        return ""
    centre, shape = found
    squares, axes = np.linalg.eigh(shape[np.ix_([a, b], [a, b])])
    radii = np.maximum(scale * np.sqrt(np.maximum(squares, 0.0)), 0.8)
    angle = -np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))  # y points down on a screen
    x, y = scale * centre[a], -scale * centre[b]
    return (
        f'<g class="{role}" transform="translate({x:.2f} {y:.2f}) rotate({angle:.1f})">'
        f'<ellipse rx="{radii[1]:.2f}" ry="{radii[0]:.2f}"/><circle r="1.7"/></g>'
    )
