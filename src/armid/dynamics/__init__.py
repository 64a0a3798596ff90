"""The numeric core: kinematics, regressor, dynamics, compact factor, base parameters."""
