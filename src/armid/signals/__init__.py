"""From a log to a dataset one can regress, and the doctor that looks at logs first."""
