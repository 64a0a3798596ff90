"""Sentences of monitoring's notes."""

WORDS = {
    "no_safety_function": "This is no safety function: it can miss contacts, and nobody is protected by it.",
    "extrapolated": "The rate of {rate:g} false alarms an hour is extrapolated: {hours:.3g} h of contact-free logs are "
    "too short to show three of them.",
    "left_out": "With limits from the others, the {logs} contact-free logs ({hours:.3g} h) have {alarms} false "
    "alarm(s).",
}
