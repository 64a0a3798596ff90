"""`armid payload FIT LOG...`: what the arm carries."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from armid.cli.arguments import arg
from armid.cli.options import FIT, LOGS, PICTURES, command, finish, hashes, kept_options, logs_from, output


@command(
    "payload",
    "mass, centre of mass and inertia of what the arm carries",
    "Estimate a payload with intervals from logs with it, given a fit of the arm without it. Friction is estimated "
    "again, joints at rest take no part. Exit code 1 where it is not known well enough, or contradicts the reference.",
    FIT,
    *LOGS,
    output("payload to write (JSON)"),
    arg("--reference FILE", "known payload to compare with: mass, com, inertia (YAML or JSON)"),
    arg("--empty LOG", "the same motion without payload; may be repeated", default=[], action="append"),
    arg("--loaded FIT", "fit of the arm with the payload attached to write (JSON)", file="written"),
    PICTURES,
    arg("--mass-within SHARE", "how well the mass must be known (0.05)", float),
    arg("--com-within M", "and the centre of mass [m] (0.01)", float),
    arg("--gain SHARE", "how well drive gains are known (default: what the logs state)", float),
    epilog="A plan for it, moving few joints in a small space: armid design ROBOT --parameters payload --joints "
    "3,4,5,6 --harmonics 1,20 --period 30 --box x y z x y z -o plan.json",
)
def payload(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.fit import load_fit
    from armid.payload import Requirement, identify_payload, load_reference

    inputs = [options.fit, *options.logs, *options.empty, *([options.reference] if options.reference else [])]
    fit = load_fit(options.fit)
    reference = load_reference(options.reference) if options.reference else None
    asked = {"mass": options.mass_within, "com_m": options.com_within}
    found = identify_payload(
        fit,
        logs_from(options),
        empty=logs_from(options, options.empty),
        reference=reference,
        requirement=Requirement(**{name: value for name, value in asked.items() if value is not None}),
        gain=options.gain,
    )
    found = replace(found, options=kept_options(options), history={**found.history, "files_sha256": hashes(inputs)})
    written = []
    if options.output:
        found.save(options.output)
        written.append(options.output)
    if options.loaded:
        found.apply(fit).save(options.loaded)
        written.append(options.loaded)
    if options.pictures:
        from armid import theme
        from armid.payload.estimate import payload_figure

        written.append(str(Path(options.pictures) / "payload-torque.png"))
        theme.save(payload_figure(found), Path(written[-1]))
    heavy = ("loaded_values", "loaded_covariance")
    data = {key: value for key, value in found.to_data().items() if key not in heavy}
    return finish(options, data, found.summary(), written, good=found.good)
