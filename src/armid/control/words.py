"""Sentences of control's notes."""

WORDS = {"no_nominal": "Without the nominal model: {reason}."}
