"""Single-joint experiments: friction against speed, load-proportional loss, warm-up, and their curves."""
