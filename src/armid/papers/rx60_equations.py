"""Closed-form torques of the first three links of the RX-60 (Karahan and Bingul), corrected and as printed."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array

#: Errors of the printed equations (armid's numbering of the papers' errata).
ERRATA = ("RX-1", "RX-2", "RX-3", "RX-4")


def torque(q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, alpha: ArrayLike, as_printed: Collection[str] = ()) -> Array:
    """Joint torques [N m], (samples, 3), from the 16 parameters alpha of Table II.

    Args:
        q: joint angles [rad], (samples, 3).
        qd: velocities.
        qdd: accelerations.
        alpha: the 16 parameters, alpha8 and alpha15 as corrected (RX-5, RX-6).
        as_printed: errata to leave in: RX-1 (sign in d23 and d32), RX-2 (sign of the thetad3^2 term of tau 2),
            RX-3 (sign of gravity), RX-4 (misplaced bracket in tau 2). ``ERRATA`` gives the printed equations.
    """
    _, t2, t3 = np.asarray(q, dtype=float).T
    v1, v2, v3 = np.asarray(qd, dtype=float).T
    a1, a2, a3 = np.asarray(qdd, dtype=float).T
    A = np.concatenate([[np.nan], np.asarray(alpha, dtype=float)])  # A[1] is alpha1
    t23 = t2 + t3
    s2, c2, s3, c3, s23, c23 = np.sin(t2), np.cos(t2), np.sin(t3), np.cos(t3), np.sin(t23), np.cos(t23)

    wrong = {key: key in as_printed for key in ERRATA}
    d11 = c2**2 * A[1] + s2**2 * A[2] + c23**2 * A[3] + c2 * s23 * A[4]
    d11 += 2.0 * s2 * c2 * A[5] + 2.0 * s23 * c23 * A[6] + s23**2 * A[7] + A[8]
    d13 = c23 * A[11] + s23 * A[12]
    d12 = c2 * A[9] + s2 * A[10] + d13
    d22 = A[1] + A[13] + A[7] + A[14] + s3 * A[4]
    d33 = A[7] + A[14]
    d23 = d33 + (-0.5 if wrong["RX-1"] else 0.5) * s3 * A[4]

    # Half the derivatives of d11 with respect to theta2 and theta3.
    by_3 = 2.0 * np.cos(2.0 * t23) * A[6] + np.sin(2.0 * t23) * (A[7] - A[3]) + c2 * c23 * A[4]
    by_2 = np.sin(2.0 * t2) * (A[2] - A[1]) + np.sin(2.0 * t23) * (A[7] - A[3]) + np.cos(t2 + t23) * A[4]
    by_2 += 2.0 * np.cos(2.0 * t2) * A[5] + 2.0 * np.cos(2.0 * t23) * A[6]
    in_tau2 = by_2
    if wrong["RX-4"]:
        in_tau2 = by_2 - np.sin(2.0 * t23) * (A[7] - A[3]) + np.sin(2.0 * t23) * A[7] - A[3]
    e13 = -s23 * A[11] + c23 * A[12]
    e12 = -s2 * A[9] + c2 * A[10] + e13
    gravity = 1.0 if wrong["RX-3"] else -1.0

    tau1 = d11 * a1 + d12 * a2 + d13 * a3 + by_2 * v1 * v2 + by_3 * v1 * v3
    tau1 += e12 * v2**2 + 2.0 * e13 * v2 * v3 + e13 * v3**2
    tau2 = d12 * a1 + d22 * a2 + d23 * a3 - 0.5 * in_tau2 * v1**2 + c3 * A[4] * v2 * v3
    tau2 += (-0.5 if wrong["RX-2"] else 0.5) * c3 * A[4] * v3**2 + gravity * (A[16] * s23 + A[15] * c2)
    tau3 = d13 * a1 + d23 * a2 + d33 * a3 - 0.5 * by_3 * v1**2 - 0.5 * c3 * A[4] * v2**2 + gravity * A[16] * s23
    return np.column_stack([tau1, tau2, tau3])
