/*
@BANNER@
 */
#ifndef @UP@_DYNAMICS_H
#define @UP@_DYNAMICS_H

#include <math.h>

#define @UP@_JOINTS @N@
@IF detector@
#define @UP@_DETECTOR 1
@END@

#ifdef __cplusplus
extern "C" {
#endif

/* Arrays have @N@ entries, one per joint; a mass matrix has @N@ x @N@, row by row. rad, rad/s, rad/s^2, N m (m, N).
 *
 * @X@_inverse_dynamics(q, qd, qdd, tau)  torque that makes the motion
 * @X@_gravity(q, tau)                    torque that holds the links against gravity
 * @X@_friction(q, qd, qdd, tau)          torque against friction, offsets included
 * @X@_springs(q, tau)                    torque of springs and counterbalances
 * @X@_mass_matrix(q, mass)               inertia in joint space, rotors included
 * @X@_observer_step(o, gain, q, qd, tau, dt, external)
 *                                        external torque from a stream of samples, dt [s] apart: a momentum observer
 *                                        whose time constant is 1 / gain (25 1/s is a good start). The state o is the
 *                                        caller's; @X@_observer_reset(o) starts it. It is no safety function.
@IF detector@
 * @X@_detector_step(d, q, qd, tau, dt, external, limit)
 *                                        the same with the calibrated limits of contacts: returns how many joints are
 *                                        beyond theirs, 0 without contact. @X@_detector_reset(d) starts it.
@END@
 * @X@_gravity_compensation(q, qd, share, tau)
 *                                        torque that makes the arm weightless, with a share (0 to 1) of its friction
 * @X@_feed_forward(q, qd, qdd, share, tau)
 *                                        torque for a wanted motion, with a share of its friction
 */

@TABLES@
static inline void @X@_cross_(const double *a, const double *b, double *c)
{
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

static inline double @X@_dot_(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* b = A' a and b = A a for a rotation by rows */
static inline void @X@_into_(const double *A, const double *a, double *b)
{
    b[0] = A[0] * a[0] + A[3] * a[1] + A[6] * a[2];
    b[1] = A[1] * a[0] + A[4] * a[1] + A[7] * a[2];
    b[2] = A[2] * a[0] + A[5] * a[1] + A[8] * a[2];
}

static inline void @X@_out_(const double *A, const double *a, double *b)
{
    b[0] = @X@_dot_(A, a);
    b[1] = @X@_dot_(A + 3, a);
    b[2] = @X@_dot_(A + 6, a);
}

/* Rotation (row by row) and place of a joint's frame in that before it. */
static inline void @X@_moved_(int i, double q, double *A, double *r)
{
    const double *P = @X@_place_ + 12 * i;
    const double c = @X@_slides_[i] ? 1.0 : cos(q), s = @X@_slides_[i] ? 0.0 : sin(q);
    int k;
    for (k = 0; k < 3; k++) {
        A[3 * k] = P[3 * k] * c + P[3 * k + 1] * s;
        A[3 * k + 1] = P[3 * k + 1] * c - P[3 * k] * s;
        A[3 * k + 2] = P[3 * k + 2];
        r[k] = P[9 + k] + (@X@_slides_[i] ? P[3 * k + 2] * q : 0.0);
    }
}

/* Recursive Newton-Euler in joint frames; adds up rigid-body torque, with rotors if asked for. */
static inline void @X@_newton_euler_(const double *inertia, const double *gravity, const double *q, const double *qd,
                                     const double *qdd, int rotors, double *tau)
{
    double A[@N@][9], r[@N@][3], w[@N@][3], al[@N@][3], a[@N@][3], f[@N@][3], n[@N@][3];
    double wp[3], ap[3], lp[3], t[3], u[3], Iw[3], Ia[3];
    int i, k, p;

    for (i = 0; i < @N@; i++) {
        const double *I = inertia + 10 * i, *h = I + 1;
        p = @X@_parent_[i];
        for (k = 0; k < 3; k++) {
            wp[k] = p < 0 ? 0.0 : w[p][k];
            ap[k] = p < 0 ? 0.0 : al[p][k];
            lp[k] = p < 0 ? -gravity[k] : a[p][k];
        }
        @X@_moved_(i, q[i], A[i], r[i]);
        /* velocity and acceleration of the joint's origin, then of the link */
        @X@_cross_(wp, r[i], t);
        @X@_cross_(wp, t, u);
        @X@_cross_(ap, r[i], t);
        for (k = 0; k < 3; k++)
            lp[k] += t[k] + u[k];
        @X@_into_(A[i], wp, w[i]);
        @X@_into_(A[i], ap, al[i]);
        @X@_into_(A[i], lp, a[i]);
        if (@X@_slides_[i]) {
            a[i][0] += 2.0 * w[i][1] * qd[i];
            a[i][1] -= 2.0 * w[i][0] * qd[i];
            a[i][2] += qdd[i];
        } else {
            al[i][0] += w[i][1] * qd[i];
            al[i][1] -= w[i][0] * qd[i];
            al[i][2] += qdd[i];
            w[i][2] += qd[i];
        }
        /* force and moment about the joint's origin */
        @X@_cross_(w[i], h, t);
        @X@_cross_(w[i], t, u);
        @X@_cross_(al[i], h, t);
        for (k = 0; k < 3; k++)
            f[i][k] = I[0] * a[i][k] + t[k] + u[k];
        Iw[0] = I[4] * w[i][0] + I[5] * w[i][1] + I[7] * w[i][2];
        Iw[1] = I[5] * w[i][0] + I[6] * w[i][1] + I[8] * w[i][2];
        Iw[2] = I[7] * w[i][0] + I[8] * w[i][1] + I[9] * w[i][2];
        Ia[0] = I[4] * al[i][0] + I[5] * al[i][1] + I[7] * al[i][2];
        Ia[1] = I[5] * al[i][0] + I[6] * al[i][1] + I[8] * al[i][2];
        Ia[2] = I[7] * al[i][0] + I[8] * al[i][1] + I[9] * al[i][2];
        @X@_cross_(w[i], Iw, t);
        @X@_cross_(h, a[i], u);
        for (k = 0; k < 3; k++)
            n[i][k] = Ia[k] + t[k] + u[k];
        tau[i] = 0.0;
    }
@IF coupled@
    for (i = 0; rotors && i < @COUPLED@; i++) {
        const double *R = @X@_coupled_ + 7 * i, *z = R + 4;
        const int c = (int)R[0], j = (int)R[1];
        @X@_cross_(w[c], z, t);
        for (k = 0; k < 3; k++)
            n[c][k] += R[3] * (qdd[j] * z[k] + qd[j] * t[k]);
        tau[j] += R[3] * (R[2] * qdd[j] + @X@_dot_(z, al[c]));
    }
@END@
@IF reflected@
    for (i = 0; rotors && i < @N@; i++)
        for (k = 0; k < @N@; k++)
            tau[i] += @X@_rotor_[@N@ * i + k] * qdd[k];
@END@
    (void)rotors;
    for (i = @N@ - 1; i >= 0; i--) {
        p = @X@_parent_[i];
        tau[i] += @X@_slides_[i] ? f[i][2] : n[i][2];
        if (p >= 0) {
            @X@_out_(A[i], f[i], t);
            @X@_out_(A[i], n[i], u);
            @X@_cross_(r[i], t, Iw);
            for (k = 0; k < 3; k++) {
                f[p][k] += t[k];
                n[p][k] += u[k] + Iw[k];
            }
        }
    }
}
@IF size@

static inline double @X@_size_(double x)
{
    return x < 0.0 ? -x : x;
}
@END@
@IF root@

/* Square root of x >= 0 by Newton's method, after bringing x between 1 and 4. */
static inline double @X@_root_(double x)
{
    double scale = 1.0, y;
    int k;
    if (!(x > 0.0))
        return 0.0;
    while (x >= 4.0) {
        x *= 0.25;
        scale *= 2.0;
    }
    while (x < 1.0) {
        x *= 4.0;
        scale *= 0.5;
    }
    y = 0.65 + 0.35 * x;
    for (k = 0; k < 4; k++)
        y = 0.5 * (y + x / y);
    return scale * y;
}
@END@

static inline void @X@_friction(const double *q, const double *qd, const double *qdd, double *tau)
{
@DECLARED@    int i;
    (void)q;
    (void)qd;
    (void)qdd;
    for (i = 0; i < @N@; i++)
        tau[i] = 0.0;
@FRICTION@}
@IF table@

/* Linear interpolation; the end values hold outside. */
static inline double @X@_table_(double x, int count, const double *at, const double *value)
{
    int k = 1;
    if (x <= at[0])
        return value[0];
    while (k < count && x > at[k])
        k++;
    if (k == count)
        return value[count - 1];
    return value[k - 1] + (value[k] - value[k - 1]) * (x - at[k - 1]) / (at[k] - at[k - 1]);
}
@END@

static inline void @X@_springs(const double *q, double *tau)
{
    int i;
    for (i = 0; i < @N@; i++)
        tau[i] = 0.0;
@SPRINGS@}

static inline void @X@_inverse_dynamics(const double *q, const double *qd, const double *qdd, double *tau)
{
    double friction[@N@], springs[@N@];
    int i;
    @X@_newton_euler_(@X@_inertia_, @X@_gravity_, q, qd, qdd, 1, tau);
    @X@_friction(q, qd, qdd, friction);
    @X@_springs(q, springs);
    for (i = 0; i < @N@; i++)
        tau[i] += friction[i] + springs[i];
}

/* Momentum M qd and weight less C' qd; with h_k the momentum of all links from k on, (C' qd)_k = (v_k x S_k) . h_k. */
static inline void @X@_momentum_(const double *q, const double *qd, double *p, double *bias)
{
    double A[@N@][9], r[@N@][3], w[@N@][3], v[@N@][3], g[@N@][3], l[@N@][3], h[@N@][3], f[@N@][3], n[@N@][3];
    double wp[3], vp[3], gp[3], t[3], u[3];
    int i, k, j;

    for (i = 0; i < @N@; i++)
        p[i] = 0.0;
    for (i = 0; i < @N@; i++) {
        const double *I = @X@_inertia_ + 10 * i, *m = I + 1;
        j = @X@_parent_[i];
        for (k = 0; k < 3; k++) {
            wp[k] = j < 0 ? 0.0 : w[j][k];
            vp[k] = j < 0 ? 0.0 : v[j][k];
            gp[k] = j < 0 ? -@X@_gravity_[k] : g[j][k];
        }
        @X@_moved_(i, q[i], A[i], r[i]);
        @X@_cross_(wp, r[i], t);
        for (k = 0; k < 3; k++)
            vp[k] += t[k];
        @X@_into_(A[i], wp, w[i]);
        @X@_into_(A[i], vp, v[i]);
        @X@_into_(A[i], gp, g[i]);
        if (@X@_slides_[i])
            v[i][2] += qd[i];
        else
            w[i][2] += qd[i];
        @X@_cross_(w[i], m, t);
        @X@_cross_(m, v[i], u);
        for (k = 0; k < 3; k++) {
            l[i][k] = I[0] * v[i][k] + t[k];
            f[i][k] = I[0] * g[i][k];
        }
        h[i][0] = I[4] * w[i][0] + I[5] * w[i][1] + I[7] * w[i][2] + u[0];
        h[i][1] = I[5] * w[i][0] + I[6] * w[i][1] + I[8] * w[i][2] + u[1];
        h[i][2] = I[7] * w[i][0] + I[8] * w[i][1] + I[9] * w[i][2] + u[2];
        @X@_cross_(m, g[i], n[i]);
    }
@IF coupled@
    for (i = 0; i < @COUPLED@; i++) {
        const double *R = @X@_coupled_ + 7 * i, *z = R + 4;
        const int c = (int)R[0];
        j = (int)R[1];
        for (k = 0; k < 3; k++)
            h[c][k] += R[3] * qd[j] * z[k];
        p[j] += R[3] * (R[2] * qd[j] + @X@_dot_(z, w[c]));
    }
@END@
@IF reflected@
    for (i = 0; i < @N@; i++)
        for (k = 0; k < @N@; k++)
            p[i] += @X@_rotor_[@N@ * i + k] * qd[k];
@END@
    for (i = @N@ - 1; i >= 0; i--) {
        j = @X@_parent_[i];
        if (@X@_slides_[i]) {
            p[i] += l[i][2];
            bias[i] = f[i][2] - (w[i][1] * l[i][0] - w[i][0] * l[i][1]);
        } else {
            p[i] += h[i][2];
            bias[i] = n[i][2] - (w[i][1] * h[i][0] - w[i][0] * h[i][1] + v[i][1] * l[i][0] - v[i][0] * l[i][1]);
        }
        if (j >= 0) {
            @X@_out_(A[i], l[i], t);
            @X@_out_(A[i], h[i], u);
            @X@_cross_(r[i], t, wp);
            for (k = 0; k < 3; k++) {
                l[j][k] += t[k];
                h[j][k] += u[k] + wp[k];
            }
            @X@_out_(A[i], f[i], t);
            @X@_out_(A[i], n[i], u);
            @X@_cross_(r[i], t, wp);
            for (k = 0; k < 3; k++) {
                f[j][k] += t[k];
                n[j][k] += u[k] + wp[k];
            }
        }
    }
}

/* What the observer keeps between samples. */
typedef struct {
    int samples;
    double qd[@N@], late[@N@], rubbing[@N@], friction[@N@], qdd[@N@], p[@N@], known[@N@], force[@N@], external[@N@];
} @X@_observer;

static inline void @X@_observer_reset(@X@_observer *o)
{
    o->samples = 0;
}

static inline void @X@_observer_step(@X@_observer *o, double gain, const double *q, const double *qd, const double *tau,
                                     double dt, double *external)
{
    const double keep = o->samples ? exp(-gain * dt) : 1.0;
    double p[@N@], known[@N@], part[@N@];
    int i;
    @X@_momentum_(q, qd, p, known);
    for (i = 0; i < @N@; i++) {
        const int still = qd[i] < @X@_still_[i] && -qd[i] < @X@_still_[i];
        const double lag = @X@_lag_[i];
        o->late[i] = o->samples && lag > 0.0 ? (lag * o->late[i] + dt * qd[i]) / (lag + dt) : qd[i];
        o->rubbing[i] = still ? 0.0 : o->late[i] * qd[i] < 0.0 ? -qd[i] : qd[i];
        o->qdd[i] = o->samples ? keep * o->qdd[i] + (1.0 - keep) * ((qd[i] - o->qd[i]) / dt) : 0.0;
        o->qd[i] = qd[i];
    }
    @X@_friction(q, o->rubbing, o->qdd, o->friction);
    for (i = 0; i < @N@; i++)
        known[i] += o->friction[i];
    @X@_springs(q, part);
    for (i = 0; i < @N@; i++) {
        const double lag = @X@_delay_[i];
        double late, force;
        known[i] += part[i];
        late = o->samples && lag > 0.0 ? (lag * o->p[i] + dt * p[i]) / (lag + dt) : p[i];
        o->known[i] = o->samples && lag > 0.0 ? (lag * o->known[i] + dt * known[i]) / (lag + dt) : known[i];
        force = tau[i] - o->known[i];
        if (o->samples)
            o->external[i] = keep * o->external[i] + (1.0 - keep) * ((late - o->p[i]) / dt - 0.5 * (o->force[i] + force));
        else
            o->external[i] = 0.0;
        o->p[i] = late;
        o->force[i] = force;
        external[i] = o->external[i];
    }
    o->samples = 1;
}
@IF detector@

/* What the detector keeps between samples: the observer, what raises limits and fades, and what is known of changes of
 * friction (all of it in proportion, viscous, offset): mean and covariance, and how they show in the external torque. */
typedef struct {
    @X@_observer observer;
    double gate[@N@], fast[@N@], stop[@N@], phi[@N@][3], mean[@N@][3], spread[@N@][3][3];
} @X@_detector;

static inline void @X@_detector_reset(@X@_detector *d)
{
    int i, a, b;
    @X@_observer_reset(&d->observer);
    for (i = 0; i < @N@; i++) {
        d->gate[i] = d->fast[i] = d->stop[i] = 0.0;
        for (a = 0; a < 3; a++) {
            const double usual = @X@_changing_[3 * i + a];
            d->phi[i][a] = d->mean[i][a] = 0.0;
            for (b = 0; b < 3; b++)
                d->spread[i][a][b] = a == b ? usual * usual : 0.0;
        }
    }
}

/* How changes of friction show in the external torque of a joint, what is expected of it, and its variance. */
static inline double @X@_expected_(@X@_detector *d, int i, double offset, double keep, double fade, double *change,
                                   double *size)
{
    const double row[3] = {d->observer.friction[i] - offset, d->observer.rubbing[i], 1.0};
    double *phi = d->phi[i], *mean = d->mean[i], expected = 0.0;
    int a, b;
    for (a = 0; a < 3; a++) {
        const double usual = @X@_changing_[3 * i + a];
        phi[a] = keep * phi[a] + (1.0 - keep) * row[a];
        mean[a] *= 1.0 - fade;
        for (b = 0; b < 3; b++)
            d->spread[i][a][b] *= 1.0 - 2.0 * fade;
        d->spread[i][a][a] += 2.0 * fade * usual * usual;
    }
    *size = 0.0;
    for (a = 0; a < 3; a++) {
        change[a] = @X@_dot_(d->spread[i][a], phi);
        expected += phi[a] * mean[a];
        *size += phi[a] * change[a];
    }
    return expected;
}

static inline int @X@_detector_step(@X@_detector *d, const double *q, const double *qd, const double *tau, double dt,
                                    double *external, double *limit)
{
    const double *qdd = d->observer.qdd, fade = d->observer.samples ? dt / @X@_gain_[1] : 0.0;
    const double keep = d->observer.samples ? exp(-@X@_gain_[0] * dt) : 1.0;
    static const double rest[@N@] = {0.0};
    double squares = 0.0, offset[@N@], noise[@N@], size[@N@], beyond[@N@], change[@N@][3];
    int i, k, a, over = 0, usable = d->observer.samples, known[@N@];
    @X@_observer_step(&d->observer, @X@_gain_[0], q, qd, tau, dt, external);
    @X@_friction(q, rest, qdd, offset);
    for (i = 0; i < @N@; i++) {
        const double excess = (qdd[i] < 0.0 ? -qdd[i] : qdd[i]) - @X@_usual_[i], stop = keep * d->stop[i];
        const double speed = qd[i] < 0.0 ? -qd[i] : qd[i], fast = keep * d->fast[i];
        beyond[i] = speed - @X@_faster_[i];
        d->gate[i] = speed < @X@_slower_[i] ? 1.0 : keep * d->gate[i];
        d->fast[i] = beyond[i] > fast ? beyond[i] : fast;
        d->stop[i] = excess > stop ? excess : stop;
        squares += qdd[i] * qdd[i];
    }
    for (i = 0; i < @N@; i++) {
        const double *c = @X@_variance_ + 4 * i, own = qdd[i] * qdd[i];
        noise[i] = c[0] + c[1] * qd[i] * qd[i] + c[2] * own + c[3] * (squares - own);
        external[i] -= @X@_expected_(d, i, offset[i], keep, fade, change[i], size + i);
        known[i] = d->gate[i] < @X@_gain_[2] && beyond[i] <= 0.0;
        if (known[i] && external[i] * external[i] > @X@_gain_[3] * @X@_gain_[3] * (size[i] + noise[i]))
            usable = 0;
        limit[i] = @X@_scale_[i] * @X@_root_(noise[i] + size[i]) + @X@_level_[i] * d->gate[i];
        limit[i] += @X@_steep_[i] * d->fast[i];
        for (k = 0; k < @N@; k++)
            limit[i] += d->stop[k] * @X@_coupling_[@N@ * k + i];
        over += external[i] > limit[i] ? 1 : -external[i] > limit[i];
    }
    for (i = 0; i < @N@; i++) {
        const double whole = size[i] + noise[i] * 2.0 / (@X@_gain_[0] * dt);
        for (a = 0; usable && known[i] && a < 3; a++) {
            d->mean[i][a] += change[i][a] * external[i] / whole;
            for (k = 0; k < 3; k++)
                d->spread[i][a][k] -= change[i][a] * change[i][k] / whole;
        }
    }
    return over;
}
@END@

static inline void @X@_gravity(const double *q, double *tau)
{
    static const double rest[@N@] = {0.0};
    @X@_newton_euler_(@X@_inertia_, @X@_gravity_, q, rest, rest, 0, tau);
}

static inline void @X@_mass_matrix(const double *q, double *mass)
{
    static const double rest[@N@] = {0.0};
    double unit[@N@], column[@N@];
    int i, j;
    for (j = 0; j < @N@; j++) {
        for (i = 0; i < @N@; i++)
            unit[i] = i == j ? 1.0 : 0.0;
        @X@_newton_euler_(@X@_inertia_, @X@_weightless_, q, rest, unit, 1, column);
        for (i = 0; i < @N@; i++)
            mass[@N@ * i + j] = column[i];
    }
}

/* A share (0 to 1) of the friction against a motion. Between the slowest speeds of the data and rest it falls to zero in
 * proportion to the speed, and it never has the direction to drive the arm: offsets are left out. */
static inline void @X@_friction_share_(const double *q, const double *qd, const double *qdd, double share, double *tau)
{
    double forwards[@N@], moving[@N@], backwards[@N@], opposite[@N@];
    int i;
    for (i = 0; i < @N@; i++) {
        const double slow = @X@_slow_[i], size = qd[i] < 0.0 ? -qd[i] : qd[i];
        moving[i] = size >= slow ? qd[i] : qd[i] < 0.0 ? -slow : slow;
        opposite[i] = -moving[i];
    }
    @X@_friction(q, moving, qdd, forwards);
    @X@_friction(q, opposite, qdd, backwards);
    share = share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share;
    for (i = 0; i < @N@; i++) {
        const double slow = @X@_slow_[i], size = qd[i] < 0.0 ? -qd[i] : qd[i];
        const double odd = 0.5 * (forwards[i] - backwards[i]), way = qd[i] < 0.0 ? -1.0 : 1.0;
        tau[i] = share * (way * odd > 0.0 ? odd : 0.0) * (size >= slow ? 1.0 : size / slow);
    }
}

static inline void @X@_feed_forward(const double *q, const double *qd, const double *qdd, double share, double *tau)
{
    double part[@N@];
    int i;
    @X@_newton_euler_(@X@_inertia_, @X@_gravity_, q, qd, qdd, 1, tau);
    @X@_friction_share_(q, qd, qdd, share, part);
    for (i = 0; i < @N@; i++)
        tau[i] += part[i];
    @X@_springs(q, part);
    for (i = 0; i < @N@; i++)
        tau[i] += part[i];
}

static inline void @X@_gravity_compensation(const double *q, const double *qd, double share, double *tau)
{
    static const double rest[@N@] = {0.0};
    double part[@N@];
    int i;
    @X@_newton_euler_(@X@_inertia_, @X@_gravity_, q, rest, rest, 0, tau);
    @X@_friction_share_(q, qd, rest, share, part);
    for (i = 0; i < @N@; i++)
        tau[i] += part[i];
    @X@_springs(q, part);
    for (i = 0; i < @N@; i++)
        tau[i] += part[i];
}

#ifdef __cplusplus
}
#endif

#endif
