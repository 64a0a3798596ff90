#ifdef __linux__
#define _GNU_SOURCE
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#include <stdio.h>
#include "arm.h"
static char in[1 << 16], out[1 << 16];
int main(void)
{
    double x[3 * @N@], tau[@N@], mass[@N@ * @N@];
    @X@_observer o;
    @X@_observer_reset(&o);
#ifdef @UP@_DETECTOR
    @X@_detector d;
    double limit[@N@];
    @X@_detector_reset(&d);
#endif
    setvbuf(stdin, in, _IOFBF, sizeof in);
    setvbuf(stdout, out, _IOFBF, sizeof out);
#ifdef __linux__
    prctl(PR_SET_SECCOMP, 1); /* from here on nothing but read, write and exit, where the kernel knows it */
#endif
    while (fread(x, sizeof(double), 3 * @N@, stdin) == 3 * @N@) {
        @X@_inverse_dynamics(x, x + @N@, x + 2 * @N@, tau);
        fwrite(tau, sizeof(double), @N@, stdout);
        @X@_gravity(x, tau);
        fwrite(tau, sizeof(double), @N@, stdout);
        @X@_friction(x, x + @N@, x + 2 * @N@, tau);
        fwrite(tau, sizeof(double), @N@, stdout);
        @X@_springs(x, tau);
        fwrite(tau, sizeof(double), @N@, stdout);
        @X@_mass_matrix(x, mass);
        fwrite(mass, sizeof(double), @N@ * @N@, stdout);
        @X@_observer_step(&o, 25.0, x, x + @N@, x + 2 * @N@, 0.004, tau);
        fwrite(tau, sizeof(double), @N@, stdout);
        @X@_gravity_compensation(x, x + @N@, 0.7, tau);
        fwrite(tau, sizeof(double), @N@, stdout);
        @X@_feed_forward(x, x + @N@, x + 2 * @N@, 0.7, tau);
        fwrite(tau, sizeof(double), @N@, stdout);
#ifdef @UP@_DETECTOR
        @X@_detector_step(&d, x, x + @N@, x + 2 * @N@, 0.004, tau, limit);
        fwrite(limit, sizeof(double), @N@, stdout);
#endif
    }
    if (fflush(stdout) != 0)
        return 1;
#ifdef __linux__
    syscall(SYS_exit, 0);
#endif
    return 0;
}
