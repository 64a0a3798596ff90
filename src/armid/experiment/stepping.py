"""One time step of the virtual robot: drive loop, friction, motion. Compiled; MuJoCo supplies the matrices.

The friction laws of the papers are written out here a second time, on purpose: what is simulated shares no code with
what is fitted. Other laws come as tables over speed.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from armid.compiling import njit, njit_within

# Rows of the state array, each with one value per joint.
# V is the velocity half a step before the instant of Q, A the mean acceleration of the last steps; the links', which
# elastic gears let differ from the motors', come last.
Q, V, Z, INTEGRAL, WARMTH, REFERENCE, A, LINK_Q, LINK_V, LINK_A = range(10)
STATES = 10
# Rows of the settings array.
KP, KD, KI, LIMIT, S0, S1, OFFSET, LOSS, LOSS_OFFSET, EXCESS, THERMAL_RATE, STIFFNESS, DAMPING, MOTOR = range(14)
SETTINGS = 14
# Channels of the record.
R_Q, R_V, R_A, R_TAU, R_WARMTH, R_FRICTION = range(6)
RECORDED = 6
POSITION, VELOCITY, TORQUE = range(3)
LAWS = ("none", "viscous", "coulomb-viscous", "stribeck", "double-exponential", "hyperbolic")
TABULATED = len(LAWS)  # any other: viscous coefficient, fastest speed, then values and slopes at the nodes
MOVING = 1e-3  # [rad/s]
# Rows of the scratch vectors, each with one value per joint, and scratch matrices.
BIAS, WEIGHT, PASSIVE, TAU, DRIVE, HEAT, NEW, ERROR, DAMP, BENT, WAY, PUSH, RIGHT, NEAR = range(14)
MASS, HEAVIER, LEFT = range(3)
VECTORS, MATRICES = 14, 3
PRESLIDING_SPEED = 0.01  # [rad/s] above which the bristles' own damping fades, as it must in a LuGre law
# Loops instead of NumPy's operations on arrays, which compile ten times longer, and no memory taken here.
_compiled: Any = njit(error_model="numpy", no_cfunc_wrapper=True, cache=True, _nrt=False)
_inner: Any = njit_within(error_model="numpy", _nrt=False)


def scratch(joints: int, dofs: int) -> tuple[np.ndarray, ...]:
    """Memory of one step: vectors, matrices, how links follow motors, and velocities of MuJoCo's bodies."""
    shapes = (VECTORS, joints), (MATRICES, joints, joints), (joints + 1, joints), (dofs,)
    return tuple(np.empty(shape) for shape in shapes)


@_inner
def _larger(x, y):
    return y if y > x else x


@_inner
def _within(x, limit):
    return limit if x > limit else -limit if x < -limit else x


@_inner
def _tabulated(c, speed):
    """Cubic interpolation between nodes at fastest * (k / last)^3, a line beyond; value and slope."""
    last = (len(c) - 2) // 2 - 1
    if speed >= c[1]:
        return c[2 + last] + c[3 + 2 * last] * (speed - c[1]), c[3 + 2 * last]
    k = int((speed / c[1]) ** (1.0 / 3.0) * last)
    k = k if k < last else last - 1
    near, far = k / last, (k + 1) / last
    low, high = c[1] * (near * near * near), c[1] * (far * far * far)
    size, t = high - low, (speed - low) / (high - low)
    a, b, up, down = c[2 + k], c[3 + k], size * c[3 + last + k], size * c[4 + last + k]
    rise = 3.0 * (b - a) - 2.0 * up - down
    bend = up + down - 2.0 * (b - a)
    return a + t * (up + t * (rise + t * bend)), (up + t * (2.0 * rise + 3.0 * t * bend)) / size


@_compiled
def level(law, c, speed, heat):
    """Friction torque opposing motion at `speed` >= 0, and its slope; `heat` scales the viscous coefficient."""
    if law == 0:
        return 0.0, 0.0
    if law == 1:
        return heat * c[0] * speed, heat * c[0]
    if law == 2:
        return heat * c[0] * speed + c[1], heat * c[0]
    if law == 3:
        fast = speed / c[3]
        bump = (c[2] - c[1]) * math.exp(-(fast * fast))
        return heat * c[0] * speed + c[1] + bump, heat * c[0] - 2.0 * speed / (c[3] * c[3]) * bump
    if law == 4:
        value, slope = heat * c[0] * speed + c[1], heat * c[0]
        if c[3] != 0.0:
            rise = c[2] * math.exp(-speed / c[3])
            value -= rise
            slope += rise / c[3]
        if c[5] != 0.0 and speed > 1e-9:
            drop = c[4] * math.exp(-1.0 / (c[5] * speed))
            value -= drop
            slope -= drop / (c[5] * speed * speed)
        return _larger(value, 0.0), slope
    if law == TABULATED:
        value, slope = _tabulated(c, speed)
        return _larger(heat * c[0] * speed + value, 0.0), heat * c[0] + slope
    one, two = math.tanh(c[1] * speed), math.tanh(c[3] * speed)
    value = c[0] * one + c[2] * two + heat * c[4] * speed
    slope = c[0] * c[1] * (1.0 - one * one) + c[2] * c[3] * (1.0 - two * two) + heat * c[4]
    return _larger(value, 0.0), slope


@_inner
def _root(stiffness, target, law, c, heat, guess):
    """Speed x >= 0 with stiffness x + level(x) = target, which exceeds level(0)."""
    x = _larger(guess, 0.0)
    for _ in range(8):
        value, slope = level(law, c, x, heat)
        change = (stiffness * x + value - target) / _larger(stiffness + slope, 0.2 * stiffness)
        x = _larger(x - change, 0.0)
        if abs(change) < 1e-12:
            break
    return x


@_inner
def _solve(matrix, right):
    """Solve in place by elimination without pivoting (the matrix is positive definite); the result is in `right`."""
    n = len(right)
    for k in range(n):
        for i in range(k + 1, n):
            factor = matrix[i, k] / matrix[k, k]
            if factor != 0.0:
                for j in range(k, n):
                    matrix[i, j] -= factor * matrix[k, j]
                right[i] -= factor * right[k]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            right[k] -= matrix[k, j] * right[j]
        right[k] /= matrix[k, k]


@_inner
def _sign(x):
    return 1.0 if x > 0.0 else -1.0 if x < 0.0 else 0.0


@_inner
def _rigid_friction(mass, left, vectors, v, dt, laws, coefficients):
    """New velocities with friction that jumps at v = 0: a joint whose friction can hold it stays where it is.

    Solves mass (v' - v) / dt + friction(v') = drive: Newton steps with a guess of which joints move which way,
    corrected from step to step; should that not settle, Gauss-Seidel, which always does.
    """
    n = len(v)
    drive, heat, result = vectors[DRIVE], vectors[HEAT], vectors[NEW]
    way, push, right = vectors[WAY], vectors[PUSH], vectors[RIGHT]
    for i in range(n):
        result[i] = v[i]
        way[i] = _sign(v[i])
        push[i] = drive[i]
        for j in range(n):
            push[i] += mass[i, j] * v[j] / dt
    for _ in range(15):
        for i in range(n):
            right[i] = push[i] if way[i] != 0.0 else 0.0
            for j in range(n):
                left[i, j] = mass[i, j] / dt if way[i] != 0.0 and way[j] != 0.0 else 0.0
            if way[i] == 0.0:
                left[i, i] = 1.0
            else:
                speed = abs(result[i])
                value, slope = level(laws[i], coefficients[i, 0 if way[i] > 0.0 else 1], speed, heat[i])
                slope = _larger(slope, -0.5 * left[i, i])
                left[i, i] += slope
                right[i] -= way[i] * (value - slope * speed)
        _solve(left, right)
        settled = True
        for i in range(n):
            new = right[i]
            if new * way[i] < 0.0:  # it came to rest within the step
                new, way[i], settled = 0.0, 0.0, False
            if abs(new - result[i]) > 1e-10:
                settled = False
            result[i] = new
        for i in range(n):
            if way[i] == 0.0:
                rest = push[i]
                for j in range(n):
                    rest -= mass[i, j] * result[j] / dt
                up, _ = level(laws[i], coefficients[i, 0], 0.0, heat[i])
                down, _ = level(laws[i], coefficients[i, 1], 0.0, heat[i])
                if rest > up:
                    way[i], settled = 1.0, False
                elif rest < -down:
                    way[i], settled = -1.0, False
        if settled:
            return
    _relaxed_friction(mass, push, dt, laws, coefficients, heat, result)


@_inner
def _relaxed_friction(mass, push, dt, laws, coefficients, heat, result):
    """Gauss-Seidel over the joints on mass v' / dt + friction(v') = push."""
    n = len(push)
    for _ in range(200):
        change = 0.0
        for i in range(n):
            rest = push[i]
            for j in range(n):
                if j != i:
                    rest -= mass[i, j] * result[j] / dt
            stiffness = mass[i, i] / dt
            up, _ = level(laws[i], coefficients[i, 0], 0.0, heat[i])
            down, _ = level(laws[i], coefficients[i, 1], 0.0, heat[i])
            if rest > up:
                new = _root(stiffness, rest, laws[i], coefficients[i, 0], heat[i], result[i])
            elif rest < -down:
                new = -_root(stiffness, -rest, laws[i], coefficients[i, 1], heat[i], -result[i])
            else:
                new = 0.0
            change = _larger(change, abs(new - result[i]))
            result[i] = new
        if change < 1e-10:
            break


@_inner
def _bristle_friction(mass, left, vectors, state, settings, dt, laws, coefficients):
    """New velocities and bristle deflections, both implicit, so that stiff bristles stay stable."""
    n = mass.shape[0]
    drive, heat, result = vectors[DRIVE], vectors[HEAT], vectors[NEW]
    right, fade = vectors[RIGHT], vectors[NEAR]
    for i in range(n):
        for j in range(n):
            left[i, j] = mass[i, j] / dt
        v, z = state[V, i], state[Z, i]
        value, _ = level(laws[i], coefficients[i, 0 if v >= 0.0 else 1], abs(v), heat[i])
        fast = v / PRESLIDING_SPEED
        s0, s1 = settings[S0, i], settings[S1, i] / (1.0 + fast * fast)
        fade[i] = 1.0 + dt * s0 * abs(v) / _larger(value, 1e-9 * s0)
        # z' = (z + dt v') / fade; friction = s0 z' + s1 (z' - z) / dt
        left[i, i] += (s0 * dt + s1) / fade[i]
        right[i] = drive[i] - s0 * z / fade[i] - s1 * (z / fade[i] - z) / dt
        for j in range(n):
            right[i] += mass[i, j] * state[V, j] / dt
    _solve(left, right)
    for i in range(n):
        result[i] = right[i]
        state[Z, i] = (state[Z, i] + dt * result[i]) / fade[i]


@_inner
def _wanted(mode, state, settings, command, before, share, dt, cycle, tau, error):
    """Torque that the drives want, and the error of position that their integral has to take up.

    Position commands are interpolated between cycles by a cubic B-spline, as drives do, since a jump of the reference's
    velocity at each cycle would show in the torque. Velocity commands are interpolated linearly and move the reference.
    """
    s, r = share, 1.0 - share
    ss, sss = s * s, s * s * s
    w0, w1 = r * r * r / 6.0, (3.0 * sss - 6.0 * ss + 4.0) / 6.0
    w2, w3 = (-3.0 * sss + 3.0 * ss + 3.0 * s + 1.0) / 6.0, sss / 6.0
    d0, d1 = -0.5 * (r * r), 0.5 * (3.0 * ss - 4.0 * s)
    d2, d3 = 0.5 * (-3.0 * ss + 2.0 * s + 1.0), 0.5 * ss
    for i in range(len(tau)):
        if mode == TORQUE:
            tau[i], error[i] = _within(command[i], settings[LIMIT, i]), 0.0
            continue
        if mode == POSITION:
            reference = w0 * before[0, i] + w1 * before[1, i] + w2 * before[2, i] + w3 * command[i]
            speed = (d0 * before[0, i] + d1 * before[1, i] + d2 * before[2, i] + d3 * command[i]) / cycle
        else:
            reference, speed = state[REFERENCE, i], (1.0 - s) * before[2, i] + s * command[i]
            state[REFERENCE, i] += dt * speed
        error[i] = reference - state[Q, i]
        tau[i] = settings[KP, i] * error[i] + settings[KD, i] * (speed - state[V, i]) + state[INTEGRAL, i]


@_inner
def _friction_change(law, c, old, new, heat):
    """Friction at velocity `new` less that at `old`; 0 where the joint rests or turns round in between."""
    if old * new <= 0.0:
        return 0.0
    own = c[0 if new > 0.0 else 1]
    return _sign(new) * (level(law, own, abs(new), heat)[0] - level(law, own, abs(old), heat)[0])


@_inner
def _between(x, nodes, values):
    """Value at x between nodes in rising order, along a line; beyond them the first or the last."""
    k = 0
    while k < len(nodes) and nodes[k] <= x:
        k += 1
    if k == 0 or k == len(nodes):
        return values[k - 1 if k > 0 else 0]
    slope = (values[k] - values[k - 1]) / (nodes[k] - nodes[k - 1])
    return values[k - 1] + slope * (x - nodes[k - 1])


@_compiled
def passive_torque(springs, linear, tables, ripple, q, torque):
    """Add what drives have to overcome: dU/dq of springs, tables of counterbalances, and ripple of gears.

    Gravity springs are rows of joint, a, b, phi, k, l0: U = k (l - l0)^2 / 2, l^2 = a^2 + b^2 - 2 a b cos(q - phi).
    Linear ones are rows of ratios r, k, u0: U = k (r . q - u0)^2 / 2. Tables are rows of joint, positions, torques;
    ripple is rows of joint, amplitude, waves per turn.
    """
    n, nodes = len(q), tables.shape[1] // 2
    for row in range(len(linear)):
        stretch = -linear[row, n + 1]
        for i in range(n):
            stretch += linear[row, i] * q[i]
        for i in range(n):
            torque[i] += linear[row, n] * stretch * linear[row, i]
    for row in range(len(tables)):
        joint = int(tables[row, 0])
        torque[joint] += _between(q[joint], tables[row, 1 : 1 + nodes], tables[row, 1 + nodes :])
    for row in range(len(ripple)):
        joint = int(ripple[row, 0])
        torque[joint] += ripple[row, 1] * math.sin(ripple[row, 2] * (q[joint] + 1.0))
    for row in range(len(springs)):
        joint, a, b = int(springs[row, 0]), springs[row, 1], springs[row, 2]
        angle = q[joint] - springs[row, 3]
        length = math.sqrt(a * a + b * b - 2.0 * a * b * math.cos(angle))
        torque[joint] += springs[row, 4] * (length - springs[row, 5]) * a * b * math.sin(angle) / length


@_inner
def _behind_springs(mass, left, vectors, state, settings, dt, links):
    """Replace the arm's mass and bias by what motors feel of it through springs, implicit and of second order.

    The torque of a spring at an instant is the mean over the steps around it (Newmark, beta 1/4): c + k (v - w) of the
    new velocities v of motors and w of links, with k = (D + K dt / 2) / 2. The links' equation then gives
    w = links[0] + v links[1:], and what is left of the motors' has the form of a rigid arm's.
    """
    n = mass.shape[0]
    bias, near, torque = vectors[BIAS], vectors[NEAR], vectors[RIGHT]
    for i in range(n):
        half, damping = 0.25 * settings[STIFFNESS, i] * dt, 0.5 * settings[DAMPING, i]
        near[i] = half + damping
        torque[i] = settings[STIFFNESS, i] * (state[Q, i] - state[LINK_Q, i])
        torque[i] += (damping - half) * (state[V, i] - state[LINK_V, i])
    for row in range(n + 1):
        for i in range(n):
            links[row, i] = torque[i] - bias[i] if row == 0 else near[i] if row == i + 1 else 0.0
            for j in range(n):
                left[i, j] = mass[i, j] / dt
                links[row, i] += left[i, j] * state[LINK_V, j] if row == 0 else 0.0
            left[i, i] += near[i]
        _solve(left, links[row])
    for i in range(n):
        bias[i] = torque[i] - near[i] * links[0, i]
        for j in range(n):
            mass[i, j] = dt * near[i] * ((1.0 if i == j else 0.0) - links[j + 1, i])
            bias[i] += mass[i, j] * state[V, j] / dt
        mass[i, i] += settings[MOTOR, i]


@_inner
def _step(mass_all, bias_all, weight_all, projection, reflected, state, settings, laws, coefficients, mode, command,
          before, share, dt, cycle, bristles, record, row, qpos, qvel, dofs, vectors, matrices, links):  # fmt: skip
    """Move on by `dt` and record the instant at its start: positions, velocities, accelerations, drive torques.

    Leapfrog: velocities live half a step before and after the instant, so that recorded position, velocity and
    acceleration are derivatives of each other to second order in `dt`. The recorded torque is the one that
    M a + h + friction + passive demands at the instant itself; that of the drives differs by less than friction changes
    in half a step. A first-order step would report torque half a step early.
    """
    nv, n = projection.shape
    mass, heavier, left = matrices[MASS], matrices[HEAVIER], matrices[LEFT]
    bias, weight, passive, tau, drive = vectors[BIAS], vectors[WEIGHT], vectors[PASSIVE], vectors[TAU], vectors[DRIVE]
    heat, new, error, damping, deflection = vectors[HEAT], vectors[NEW], vectors[ERROR], vectors[DAMP], vectors[BENT]
    for i in range(n):
        bias[i] = weight[i] = 0.0
        for j in range(n):
            mass[i, j] = reflected[i, j]
        for a in range(nv):
            if projection[a, i] != 0.0:
                bias[i] += projection[a, i] * bias_all[a]
                weight[i] += projection[a, i] * weight_all[a]
                for j in range(n):
                    total = 0.0
                    for b in range(nv):
                        total += mass_all[a, b] * projection[b, j]
                    mass[i, j] += projection[a, i] * total
    elastic = settings[STIFFNESS, 0] > 0.0
    if elastic:
        for i in range(n):
            bias[i] += passive[i]
            passive[i] = 0.0
        _behind_springs(mass, left, vectors, state, settings, dt, links)
    _wanted(mode, state, settings, command, before, share, dt, cycle, tau, error)
    for i in range(n):
        heat[i] = 1.0 + settings[EXCESS, i] * (1.0 - state[WARMTH, i])
    # The drives' damping acts on the new velocity: stable however small the inertia is that a loop meets. A drive that
    # would exceed its limit even so gives its limit, which moves the others: as often as there are drives, at most.
    settled = False
    for i in range(n):
        damping[i], deflection[i] = settings[KD, i] if mode != TORQUE else 0.0, state[Z, i]
    while not settled:
        settled = True
        for i in range(n):
            for j in range(n):
                heavier[i, j] = mass[i, j]
            loss = settings[LOSS, i] * weight[i] + settings[LOSS_OFFSET, i]
            drive[i] = tau[i] - bias[i] - passive[i] - loss - settings[OFFSET, i]
            heavier[i, i] += dt * damping[i]
            state[Z, i] = deflection[i]
        if bristles:
            _bristle_friction(heavier, left, vectors, state, settings, dt, laws, coefficients)
        else:
            _rigid_friction(heavier, left, vectors, state[V], dt, laws, coefficients)
        for i in range(n):
            given = tau[i] - damping[i] * (new[i] - state[V, i])
            if abs(given) > settings[LIMIT, i]:
                tau[i], damping[i], settled = math.copysign(settings[LIMIT, i], given), 0.0, False
    for i in range(n):
        less = damping[i] * (new[i] - state[V, i])
        tau[i] -= less
        drive[i] -= less
        if damping[i] > 0.0:  # a saturated drive does not wind up
            state[INTEGRAL, i] += dt * settings[KI, i] * error[i]
    for i in range(n):
        velocity, inertial = state[V, i] + 0.5 * dt * state[A, i], 0.0
        for j in range(n):
            inertial += mass[i, j] * (new[j] - state[V, j]) / dt
        later = 0.0 if bristles else _friction_change(laws[i], coefficients[i], new[i], velocity, heat[i])
        record[row, R_Q, i], record[row, R_V, i] = state[Q, i], velocity
        record[row, R_A, i], record[row, R_TAU, i] = (new[i] - state[V, i]) / dt, tau[i] + later
        record[row, R_WARMTH, i] = state[WARMTH, i]
        record[row, R_FRICTION, i] = drive[i] - inertial + settings[OFFSET, i] + later
    for i in range(n):
        state[A, i] += 0.5 * ((new[i] - state[V, i]) / dt - state[A, i])  # a mean: no zigzag between steps
        state[Q, i] += dt * new[i]
        state[V, i] = new[i]
        target = 1.0 if abs(new[i]) > MOVING else 0.0
        state[WARMTH, i] += dt * settings[THERMAL_RATE, i] * (target - state[WARMTH, i])
    for i in range(n):
        link = links[0, i] if elastic else new[i]
        for j in range(n if elastic else 0):
            link += links[j + 1, i] * new[j]
        state[LINK_A, i] += 0.5 * ((link - state[LINK_V, i]) / dt - state[LINK_A, i])
        state[LINK_Q, i] += dt * link
        state[LINK_V, i] = link
        qpos[dofs[i]] = state[LINK_Q, i]
    for a in range(nv):
        total = 0.0
        for i in range(n):
            total += projection[a, i] * (state[LINK_V, i] + 0.5 * dt * state[LINK_A, i])
        qvel[a] = total


@intrinsic
def _call(typing, address, arguments):
    """Call a C function without a result at an address with integers and arrays, all as words of 64 bits."""

    def code(context, builder, signature, values):
        word, words = ir.IntType(64), []
        for kind, value in zip(arguments, cgutils.unpack_tuple(builder, values[1]), strict=True):
            array = isinstance(kind, types.Array)
            memory = context.make_array(kind)(context, builder, value).data if array else None
            words.append(builder.ptrtoint(memory, word) if array else value)
        function = ir.FunctionType(ir.VoidType(), [word] * len(words))
        builder.call(builder.inttoptr(values[0], function.as_pointer()), words)
        return context.get_dummy_value()

    return types.void(address, arguments), code


@_compiled
def advance(mujoco, model, data, loaded, mass, bias, weight, projection, reflected, springs, linear, tables, ripple,
            state, settings, laws, coefficients, mode, commands, before, substeps, dt, cycle, bristles, record, qpos,
            qvel, dofs, vectors, matrices, links, velocity):  # fmt: skip
    """One cycle per command, each in `substeps`; MuJoCo, whose functions' addresses are given, supplies the matrices.

    From Python, calls would take more time than the work. The last four are `scratch`.
    """
    kinematics, com_position, make_mass, full_mass, com_velocity, newton_euler = mujoco
    passive = vectors[PASSIVE]
    for c in range(len(commands)):
        for part in range(substeps):
            _call(kinematics, (model, data))
            _call(com_position, (model, data))
            _call(make_mass, (model, data))
            _call(full_mass, (model, data, mass))
            _call(com_velocity, (model, data))
            _call(newton_euler, (model, data, 0, bias))
            if loaded:  # torque that holds the arm at rest
                for a in range(len(qvel)):
                    velocity[a], qvel[a] = qvel[a], 0.0
                _call(com_velocity, (model, data))
                _call(newton_euler, (model, data, 0, weight))
                for a in range(len(qvel)):
                    qvel[a] = velocity[a]
            for i in range(len(passive)):
                passive[i] = 0.0
            passive_torque(springs, linear, tables, ripple, state[LINK_Q], passive)
            _step(mass, bias, weight, projection, reflected, state, settings, laws, coefficients, mode, commands[c],
                  before, part / substeps, dt, cycle, bristles, record, c * substeps + part, qpos, qvel, dofs, vectors,
                  matrices, links)  # fmt: skip
        for i in range(len(passive)):
            before[0, i], before[1, i], before[2, i] = before[1, i], before[2, i], commands[c, i]
