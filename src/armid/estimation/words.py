"""Sentences of estimation's notes; the values of each are those of its placeholders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def _numbers(values: Sequence[float], form: str = ".3g") -> str:
    return " ".join(f"{value:{form}}" for value in values)


def _left_out(share: float, rules: Sequence[Mapping[str, Any]], marked: bool) -> str:
    words = []
    for rule in rules:
        around = f", and {rule['margin_ms']:g} ms around that"
        if rule["filtered"]:
            around = ", for at least half of a filtered row"
        words.append(f"slower than {rule['share']:.0%} of its own speed or than {rule['floor']:g} rad/s{around}")
    more = ", or the data set leaves it out" if marked else ""
    return f"{share:.1%} of the rows do not count: their joint is {'; '.join(words)}{more}."


def _random_effects(shares: Mapping[str, float]) -> str:
    words = {"smooth": "its shape", "smooth-even": "direction", "load": "the load", "gain": "the weight carried"}
    found = [f"by {words[kind]} ({share:.2g})" for kind, share in shares.items() if kind in words and share > 1e-3]
    if not found:
        return "Friction beyond viscous and Coulomb friction does not show in the data."
    return (
        f"Friction differs from viscous and Coulomb friction {', '.join(found)}, as shares of its level or of the load."
    )


def _recordings(spread: Sequence[float], count: int) -> str:
    if count == 1:
        return (
            f"How friction differs from one recording to the next is not known from one recording: "
            f"{spread[0]:.0%} of its level is assumed for intervals of single samples."
        )
    coulomb, viscous, offset = spread
    return (
        f"Between the {count} recordings Coulomb friction differs by {coulomb:.2g}, viscous friction by {viscous:.2g}, "
        f"the offset by {offset:.2g} of the friction level (standard deviations)."
    )


def _misfit(off: Mapping[str, float]) -> str:
    joints = ", ".join(f"{joint} ({torque:.2g} N m)" for joint, torque in off.items())
    return (
        f"Parts of the data, predicted from the others, are off by more than noise explains: {joints}. Something moves "
        "there that the model does not describe; intervals of single samples are wider by it."
    )


def _likelihood(steps: int, converged: bool, moved_rad: float | None, weighted: bool, measured: bool) -> str:
    end = f"converged in {steps} steps" if converged else f"NOT converged after {steps} steps; raise iterations"
    forms = []
    if moved_rad is not None:
        forms.append(f"the Fourier series of the motion were estimated too and moved by at most {moved_rad:.1e} rad")
    if weighted:
        forms.append("rows are weighted by what noise of their motion does to their torque")
    noise = "as measured" if measured else "from the residuals"
    return f"Maximum likelihood ({end}): {', and '.join(forms)}; torque noise {noise}."


def _total(columns: int, total: int, column_error: float | None) -> str:
    source = "from the noise of the motion"
    if column_error is not None:
        source = f"each {column_error:g} times the torque's, relatively"
    return f"Total least squares with errors in {columns} of {total} columns, {source}."


def _instruments(simulated: bool, correlation: Sequence[float]) -> str:
    kind = "the motion simulated with the estimate" if simulated else "the commanded motion"
    shares = ", ".join(f"{share:.2f}" for share in correlation)
    return f"Instruments are the regressor of {kind}; its accelerations correlate with the measured ones by {shares}."


def _prior(source: str, links: Sequence[int], strength: float, link_strength: Mapping[str, float]) -> str:
    own = "".join(f", link {number} {100.0 * share:.3g} %" for number, share in link_strength.items())
    numbers = ", ".join(str(number) for number in links)
    return f"Prior from {source} on links {numbers}, strength {100.0 * strength:.3g} %{own}."


def _determined(total: int, others: Sequence[str], prior: bool) -> str:
    if not others:
        return f"The data determine all {total} parameters."
    who = "prior and a plausible arm determine" if prior else "a plausible arm determines"
    return (
        f"The data determine {total - len(others)} of {total} parameters by themselves; the others show only in "
        f"combinations or weakly, and within what the data say of those {who} {', '.join(others)}."
    )


def _prior_determined(total: int, others: Sequence[str]) -> str:
    if not others:
        return f"The data determine all {total} values."
    return f"The data determine {total - len(others)} of {total} values, the prior the rest: {', '.join(others)}."


WORDS: dict[str, Any] = {
    # any estimator
    "rows_left_out": _left_out,
    "far_above_noise": (
        "Residuals of {joint} are {ratio:.3g} times the noise: if that surprises you, check that log and description "
        "belong to the same arm, and signs, units and the order of joints (armid inspect)."
    ),
    "gain_uncertainty": lambda shares: (
        f"Drive gains are taken to be known to {_numbers([100.0 * share for share in shares], '.2g')} % "
        "(gain_uncertainty of the recipe): intervals of parameters account for that; predicted torque is what the "
        "same drives report."
    ),
    "white": "Residuals are white; intervals follow from their size.",
    "correlated": "Residuals are correlated over about {rows} rows; intervals account for that.",
    # single estimators
    "directions": "{used} of {total} directions are used.",
    "likelihood": _likelihood,
    "total": _total,
    "instruments": _instruments,
    "simulated": "Estimate and simulation agree after {rounds} rounds.",
    "simulation_not_converged": "Not converged after {rounds} rounds (last change {change:.1e}); raise iterations.",
    "robust": lambda loss, share, scales: (
        f"{loss.capitalize()} weights: {share:.1%} of the rows count less than half; scale of the residuals per joint "
        f"{_numbers(scales)} N m."
    ),
    "not_converged": "Not converged after {iterations} iterations; raise iterations or tolerance.",
    "objective": (
        "Objective {value:.4g} after {evaluations} evaluations; weighted least squares has {least_squares:.4g} at once."
    ),
    "search_intervals": (
        "A search has no covariance of its own; intervals are those of least squares, widened by the distance to its "
        "solution."
    ),
    "at_bounds": lambda names: f"At the edge of their bounds: {', '.join(names)}.",
    # friction
    "friction_law": "{joint}: {law}.",
    # physical consistency and priors
    "consistency_cost": lambda change: f"Physical consistency changes the weighted residual by {100.0 * change:.2g} %.",
    "prior": _prior,
    "determined": _determined,
    "prior_determined": _prior_determined,
    "random_effects": _random_effects,
    "recordings": _recordings,
    "misfit": _misfit,
    "regularised": (
        "What the data leave open is settled by an arm of the description's geometry or nominal inertias (strength "
        "{strength:.2g}, mean link of {mass_factor:.3g} kg)."
    ),
    "silent_masses": lambda links: (
        f"No torque shows the mass of link{'s' if len(links) > 1 else ''} {', '.join(map(str, links))}: what is given "
        "there is that of a plausible arm."
    ),
    "not_consistent": "No physically consistent arm was sought or found ({reason}): method wls.",
}  # fmt: skip
