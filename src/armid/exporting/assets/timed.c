#include <stdio.h>
#include <time.h>
#include "arm.h"
int main(void)
{
    double q[@N@], qd[@N@], qdd[@N@], tau[@N@], sum = 0.0, best = 1e9;
    int i, k, round;
    for (round = 0; round < 20; round++) {
        const clock_t start = clock();
        double used;
        for (k = 0; k < 20000; k++) {
            for (i = 0; i < @N@; i++) {
                q[i] = 0.1 * i + 1e-4 * k;
                qd[i] = 0.3 - 0.1 * i;
                qdd[i] = 1e-3 * k;
            }
            @X@_inverse_dynamics(q, qd, qdd, tau);
            sum += tau[@N@ - 1];
        }
        used = (double)(clock() - start) / CLOCKS_PER_SEC / 20000;
        best = used < best ? used : best;
    }
    printf("%.9e %.3e\n", best, sum);
    return 0;
}
