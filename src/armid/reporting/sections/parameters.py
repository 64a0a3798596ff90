"""The identified parameters: values with intervals, what the data separate, and the links they stand for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from armid.arrays import Array, Mask
from armid.estimation.fit import Fit
from armid.estimation.identifiability import DETERMINED
from armid.figures import Block, Figure, Panel, line
from armid.reporting.evidence import Evidence
from armid.reporting.html import Cell, Column, Row, Section, bullets, folded, lacking, paragraph, table, text
from armid.reporting.numbers import listed, percent, plus_minus, pretty, short
from armid.robot.inertia import pseudo_inertia, to_com
from armid.robot.robot import inertial_names
from armid.torque.friction.term import TERMS
from armid.validation.judging import implausible_links

PLANES = ((0, 1, "x", "y"), (0, 2, "x", "z"), (1, 2, "y", "z"))
SIDE = 104.0  # of a picture [px of the view box]


def parameters(evidence: Evidence) -> Section:
    """All parameters, those that the data do not determine marked."""
    fit, truth = evidence.fit, {row.name: row.reference for row in evidence.beside_truth}
    columns = [
        Column("name", words=True),
        Column("value ± 95 %", "", "estimate and half of its 95 % interval"),
        Column("truth", "drawn", "true value (bar) beside the estimate with its 95 % interval", aside=True)
        if truth
        else Column("σ", "", "standard deviation, in the unit of the value", aside=True),
        Column("rel. σ", "", "standard deviation over the value"),
        Column("class", words=True, hint="determined: σ at most 30 % of the value; weak: more; undetermined: free"),
        Column("stands for", words=True, hint="the combination of link parameters that the motion reveals"),
    ]
    size = np.abs(fit.values)
    relative = np.divide(fit.sigma, size, out=np.full(len(size), np.inf), where=size > 0.0)
    rows, which = _parameter_rows(fit, relative, truth), np.flatnonzero(_parameter(fit))
    links = np.array([not fit.friction_columns()[k] and _meaning(fit.names[k]) is None for k in which])
    parts = [table(columns, [rows[k] for k in np.flatnonzero(links)], caption="identified parameters", stacked=True)]
    if others := [rows[k] for k in np.flatnonzero(~links)]:
        more = table(columns, others, caption="friction", stacked=True)
        parts.append(folded(f"{len(others)} coefficients of friction and of the weight carried", more))
    order = [k for k in np.argsort(-np.where(np.isfinite(relative), relative, np.inf)) if _parameter(fit)[k]]
    least = [fit.names[k] for k in order if fit.names[k] not in fit.determined]
    count, total = fit.identifiability.counts
    words = f"The data determine {count} of {total} parameters"
    if least:
        shown = ", ".join(least[:4]) + (f" and {len(least) - 4} more" if len(least) > 4 else "")
        words += f"; the other{'s are' if len(least) > 1 else ' is'} {shown}."
    else:
        words += f"; {fit.names[order[0]]} is known least, to {percent(float(relative[order[0]]))}."
    return Section("parameters", "Base parameters", words, parts)


def _parameter(fit: Fit) -> Mask:
    """Which columns are parameters; coefficients of a friction curve mean nothing one by one."""
    return np.array([kind != "curve" for kind in fit.identifiability.classes])


def _parameter_rows(fit: Fit, relative: Array, truth: Mapping[str, float]) -> list[Row]:
    lower, upper = fit.interval()
    rows = []
    for i in np.flatnonzero(_parameter(fit)):
        name, kind, unit = fit.names[i], fit.identifiability.classes[i], fit.torque_model.units[i]
        value, sigma, half = float(fit.values[i]), float(fit.sigma[i]), 0.5 * float(upper[i] - lower[i])
        share = percent(float(relative[i])) if relative[i] < 10.0 else ">1000\u00a0%"
        together = pretty("" if unit == "1" else unit).replace(" ", "\u00a0")  # no line end divides a unit
        cells = (
            Cell(name, code=True),
            Cell(f"{plus_minus(value, half)} {together}", value),
            _beside(truth.get(name), value, half) if truth else Cell(short(sigma, 2), sigma),
            Cell(share, float(min(relative[i], 1e9)), float(min(relative[i] / DETERMINED, 1.0))),
            Cell(kind, float(("determined", "weak", "undetermined").index(kind))),
            Cell(_meaning(name) or fit.expression(name), code=_meaning(name) is None),
        )
        rows.append(Row(cells, "" if kind == "determined" else f"{kind}: the data do not tell it"))
    return rows


def _meaning(name: str) -> str | None:
    """What a coefficient that a fit adds to the model multiplies, in words; None for other parameters."""
    titles = {column: law.title for law in TERMS.values() for column in law.columns}
    return titles.get(name.rstrip("0123456789"))


def _beside(truth: float | None, value: float, half: float) -> Cell:
    """A true value, drawn beside the estimate."""
    if truth is None:
        return Cell("–", float("nan"))
    return Cell(short(truth), truth, beside=(truth - value) / half if half > 0.0 else None)


def conditioning(evidence: Evidence) -> Section:
    """Singular values beside the correlation matrix."""
    fit = evidence.fit
    judged = fit.identifiability
    values = np.asarray(judged.singular_values, dtype=float)
    shown = np.maximum(values, 1e-8 * float(values.max(initial=1e-300)))
    singular = Panel(
        "[–]",
        [line("predicted", np.arange(1, len(values) + 1), shown, mode="lines+markers", size=5, log=True)],
        x_title="singular value of the scaled regressor, largest first",
        x_range=[0.5, len(values) + 0.5],
        log="y",
        corner=f"condition number {short(judged.condition)}",
    )
    names, correlation = _correlation(fit)
    heat = {"names": names, "values": np.round(np.clip(correlation, -1.0, 1.0), 2).tolist()}
    height = float(min(max(260, 11 * len(names) + 20), 640))
    caption = "singular values of the weighted regressor with columns of unit length"
    parts: list[str | Figure] = [
        Figure("singular", [Block("", [[singular]], (200.0,))], caption),
        paragraph("Correlation between the estimates:", "remark"),
        Figure("correlation", [Block("", [[Panel("", heat=heat)]], (height,))], "correlation between the estimates"),
    ]
    if judged.combinations:
        parts.append(paragraph("Least known combinations, the weakest first:"))
        parts.append(bullets(words.replace("- ", "− ") for words in judged.combinations))
    return Section("conditioning", "What the data separate", _conditioning_sentence(fit), parts, folded=True)


def _correlation(fit: Fit) -> tuple[list[str], Array]:
    which = np.flatnonzero(_parameter(fit))
    return [fit.names[k] for k in which], fit.correlation[np.ix_(which, which)]


def _conditioning_sentence(fit: Fit) -> str:
    judged, (names, correlation) = fit.identifiability, _correlation(fit)
    start = f"The condition number is {short(judged.condition)}"
    start += ", which is high" if judged.poor else ""
    matrix = np.abs(correlation - np.diag(np.diag(correlation)))
    if len(names) < 2:
        return f"{start}."
    i, j = np.unravel_index(int(np.argmax(matrix)), matrix.shape)
    strong = int(np.sum(np.triu(matrix, 1) > 0.9))
    pair = f"the strongest correlation is {correlation[i, j]:+.2f}, between {names[i]} and {names[j]}"
    pairs = "no pair of estimates is" if strong == 0 else "1 pair is" if strong == 1 else f"{strong} pairs are"
    return f"{start}; {pairs} correlated above 0.9; {pair}.".replace("-", "\N{MINUS SIGN}")


def links(evidence: Evidence) -> Section:
    """A table and ellipsoids in the links' own frames."""
    fit = evidence.fit
    if fit.standard_parameters is None:
        words = "Base parameters do not say how mass is divided among links: armid identify --method feasible does."
        return lacking("links", "Links", words)
    bodies = link_bodies(fit)
    nominal = fit.robot.nominal_inertia
    body = table(
        _link_columns(nominal is not None), _link_rows(fit, bodies), caption="inertia of each link in its own frame"
    )
    body += _pictures(fit, bodies)
    grey = "grey dashed: the nominal one; " if nominal is not None else ""
    body += paragraph(
        "Blue: the even ellipsoid with the identified mass and inertia, in the link’s frame, a dot at its centre of "
        f"mass; {grey}the cross is the frame’s origin, and a link’s views reach as far from it as stated. What the "
        "data do not determine is one choice that agrees with them, not a measurement.",
        "remark",
    )
    body += bullets(str(objection.note) for objection in implausible_links(fit))
    return Section("links", "Links", _links_sentence(fit, bodies), body)


def link_bodies(fit: Fit) -> list[Array]:
    """Ten inertial parameters of each link of a physically consistent fit."""
    values = fit.standard_parameters or {}
    names = [inertial_names(link) for link in range(1, len(fit.robot.links) + 1)]
    return [np.array([float(values.get(name, 0.0)) for name in own]) for own in names]


def _links_sentence(fit: Fit, bodies: list[Array]) -> str:
    total = sum(float(body[0]) for body in bodies)
    nominal = fit.robot.nominal_inertia
    against = "" if nominal is None else f" (nominal: {short(float(nominal[:, 0].sum()))} kg)"
    masses = [f"m{link}" for link in range(1, len(bodies) + 1) if f"m{link}" in fit.determined]
    known = "no link’s mass" if not masses else f"only {listed(masses)}" if len(masses) < len(bodies) else "every mass"
    verb = "are" if len(masses) > 1 and len(masses) < len(bodies) else "is"
    start = f"Motion shows most masses only in combinations: {known} {verb} determined by the data"
    return f"{start}; one arm that agrees with them weighs {short(total)} kg{against}."


def _link_columns(nominal: bool) -> list[Column]:
    columns = [Column("link", words=True), Column("mass", "kg")]
    columns += [Column("nominal", "kg", "mass in the robot's own file")] if nominal else []
    columns += [Column(f"c{axis}", "mm", f"centre of mass along {axis} of the link's frame") for axis in "xyz"]
    columns += [Column("principal moments", "g m²", "about the centre of mass, smallest first")]
    return [
        *columns,
        Column(
            "determined by the data",
            words=True,
            hint="shows alone, with a standard deviation of at most 30 % of the value",
        ),
    ]


def _link_rows(fit: Fit, bodies: list[Array]) -> list[Row]:
    rows, nominal = [], fit.robot.nominal_inertia
    odd = {objection.note.values.get("link", ""): str(objection.note) for objection in implausible_links(fit)}
    for index, body in enumerate(bodies):
        mass, centre, about = to_com(body)
        moments = np.linalg.eigvalsh(about)
        cells = [Cell(fit.robot.links[index].link_name), Cell(short(mass), mass)]
        if nominal is not None:
            cells.append(Cell(short(float(nominal[index, 0])), float(nominal[index, 0])))
        cells += [Cell(_millimetres(float(c)) if mass > 0.0 else "–", float(c)) for c in centre]
        cells.append(Cell(" · ".join(short(1e3 * float(value), 2) for value in moments), float(moments[-1])))
        determined = [name for name in inertial_names(index + 1) if name in fit.determined]
        cells.append(Cell(", ".join(determined) or "none", code=bool(determined)))
        rows.append(Row(tuple(cells), odd.get(fit.robot.links[index].link_name, "")))
    return rows


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
            far = f"{short(reach, 2)} m" if reach >= 1.0 else f"{1e3 * reach:.0f} mm"
            name = f"{text(fit.robot.links[index].link_name)} <small>±{text(far)}</small>"
            parts.append(f'<div class="link"><h3>{name}</h3><div class="views">{views}</div></div>')
    return f'<div class="links">{"".join(parts)}</div>'


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
