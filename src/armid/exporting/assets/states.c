#include <stdio.h>
#include "arm.h"
int main(void)
{
    double x[3 * @N@], tau[@N@], mass[@N@ * @N@];
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
    }
    return 0;
}
