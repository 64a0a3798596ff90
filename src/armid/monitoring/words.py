"""Sentences of monitoring's notes."""

WORDS = {
    "no_safety_function": "This is no safety function: it can miss contacts, and nobody is protected by it.",
    "extrapolated": "The rate of {rate:g} false alarms an hour is extrapolated: {hours:.3g} h of contact-free logs are "
    "too short to show more than three of them, or are a single log, which does not show how logs differ.",
    "beyond": lambda joints: (
        f"The logs accelerate beyond the contact-free ones ({', '.join(joints)}), so that the rate of false alarms is "
        "extrapolated; calibrate on motion like this."
    ),
    "updated": "Friction, delay and load were brought up to date by {seconds:.3g} s of motion.",
    "unusual": lambda names: f"More than usual has changed: {', '.join(names)}.",
    "usual": "Nothing has changed by more than it usually does between recordings.",
    "left_out": "With limits from the others, the {logs} contact-free logs ({hours:.3g} h) have {alarms} false "
    "alarm(s).",
}
