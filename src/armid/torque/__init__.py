"""What makes a robot's torque, one file per term, and `TorqueModel`, their sum."""
