"""The whole procedure, staged and resumable: see `armid.run.procedure.run`."""
