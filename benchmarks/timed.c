#include <stdio.h>
#include <time.h>
#include "arm.h"
int main(void)
{
    double q[@N@], qd[@N@], qdd[@N@], tau[@N@], sum = 0.0, best[2] = {1e9, 1e9};
    @X@_observer o;
    int i, k, round;
    @X@_observer_reset(&o);
#ifdef @UP@_DETECTOR
    @X@_detector d;
    double limit[@N@];
    @X@_detector_reset(&d);
#endif
    for (round = 0; round < 40; round++) {
        const clock_t start = clock();
        double used;
        for (k = 0; k < 20000; k++) {
            for (i = 0; i < @N@; i++) {
                q[i] = 0.1 * i + 1e-4 * k;
                qd[i] = 0.3 - 0.1 * i;
                qdd[i] = 1e-3 * k;
            }
            if (round % 2 == 0)
                @X@_inverse_dynamics(q, qd, qdd, tau);
            else
#ifdef @UP@_DETECTOR
                sum += @X@_detector_step(&d, q, qd, qdd, 0.002, tau, limit);
#else
                @X@_observer_step(&o, 25.0, q, qd, qdd, 0.002, tau);
#endif
            sum += tau[@N@ - 1];
        }
        used = (double)(clock() - start) / CLOCKS_PER_SEC / 20000;
        best[round % 2] = used < best[round % 2] ? used : best[round % 2];
    }
    printf("%.9e %.9e %.3e\n", best[0], best[1], sum);
    return 0;
}
