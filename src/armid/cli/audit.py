"""`armid audit`: are these parameters physically consistent, and if not, why not."""

from __future__ import annotations

import argparse

from armid.cli.arguments import arg
from armid.cli.options import ARM_CHOICE, SEED, command, finish, output, robot_arguments, robot_from
from armid.errors import ArmidError


@command(
    "audit",
    "say whether given parameters are physically consistent",
    "Say whether the parameters of a fit (fit.json), a URDF or a robot file are physically consistent; if not, why not "
    "and which consistent set is nearest. Exit code 1 if they are not.",
    *robot_arguments(also="; or a fit (.json), written by `armid identify`"),
    *ARM_CHOICE,
    arg("--published", "audit the published sets of ROBOT instead"),
    arg("--set NAME", "only this published set (see `armid robots ROBOT`)"),
    SEED,
    output("audit to write (JSON), nearest consistent set included"),
)
def audit(options: argparse.Namespace) -> int:
    """Run the command."""
    import json

    from armid.estimation.fit import load_fit
    from armid.files import write_text
    from armid.validation.auditing import audit

    is_fit = options.robot.endswith(".json")
    if is_fit and (options.links or options.no_rotors or options.gravity or options.simplify):
        raise ArmidError(
            f"{options.robot}: is a fit, which has its robot with it; leave --links, --no-rotors, --gravity and "
            "--simplify out"
        )
    what = load_fit(options.robot) if is_fit else robot_from(options)
    found = audit(what, published=options.published, name=options.set, seed=options.seed)
    # With several sets the first that is impossible speaks for all.
    worst = next((one for one in found if not one.possible), found[0])
    data = worst.to_data()
    if len(found) > 1:
        data["sets"] = [one.to_data() for one in found]
    if options.output:
        write_text(options.output, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    files = [options.output] if options.output else []
    return finish(options, data, (one.summary() for one in found), files, good=worst.possible)
