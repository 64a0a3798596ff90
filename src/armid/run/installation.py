"""What is installed, and whether it works."""

from __future__ import annotations

import importlib
import importlib.util
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

import numpy as np

from armid._version import __version__

#: The extras and the packages that show that they are there.
EXTRAS = {
    "sim": ("mujoco",),
    "design": ("ipyopt",),
    "feasible": ("clarabel",),
    "report": ("matplotlib", "plotly"),
    "parquet": ("pyarrow",),
    "ros": ("rosbags",),
    "studio": ("nicegui",),
    "fleet": ("distributed", "fsspec"),
}
_RENDER = """
import mujoco
model = mujoco.MjModel.from_xml_string('<mujoco><worldbody><geom size=".1"/></worldbody></mujoco>')
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
with mujoco.Renderer(model, 32, 32) as renderer:
    renderer.update_scene(data)
    renderer.render()
"""


@dataclass(frozen=True)
class Item:
    """One thing that was looked at.

    Attributes:
        name: what it is.
        state: ``ok``, ``absent`` (not installed, which is a choice) or ``broken``.
        detail: version, or what is wrong and what to do.
    """

    name: str
    state: str
    detail: str

    @property
    def good(self) -> bool:
        """Not broken."""
        return self.state != "broken"


def examine_installation() -> list[Item]:
    """Look at everything; a thing that fails is reported, never raised."""
    looks: dict[str, Callable[[], tuple[str, str]]] = {
        "kernels": _kernels,
        "BLAS": _blas,
        "MuJoCo dynamics": _simulation,
        "MuJoCo rendering": _rendering,
        "C compiler": _compiler,
    }
    start = Item("armid", "ok", f"{__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}")
    return [start, *(_extra(name) for name in EXTRAS), *(_safely(name, look) for name, look in looks.items())]


def _extra(name: str) -> Item:
    """Whether an extra's packages can be imported."""
    versions = []
    for package in EXTRAS[name]:
        try:
            __import__(package)
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(package)
        except ModuleNotFoundError:
            if not _wanted_here(package):
                return Item(f"extra {name}", "absent", f"{package} has no package for this platform")
            return Item(f"extra {name}", "absent", f"install it with: pip install 'armid[{name}]'")
        except Exception as error:
            return Item(f"extra {name}", "broken", f"{package} cannot be imported ({error}); install it again")
    return Item(f"extra {name}", "ok", ", ".join(versions))


def _wanted_here(package: str) -> bool:
    """Whether armid asks for a package on this platform."""
    try:
        lines = [line for line in requires("armid") or () if line.startswith(package)]
    except PackageNotFoundError:
        return True
    return not any("sys_platform == 'linux'" in line for line in lines) or sys.platform == "linux"


def _safely(name: str, look: Callable[[], tuple[str, str]]) -> Item:
    """State and detail that a look returns, as an item."""
    try:
        return Item(name, *look())
    except Exception as error:
        return Item(name, "broken", f"{type(error).__name__}: {error}")


def _kernels() -> tuple[str, str]:
    """The compiled loops agree with each other: torque is the regressor times the parameters."""
    import time

    import numba

    from armid.dynamics import Model
    from armid.robot import load_robot

    start = time.perf_counter()
    model = Model(load_robot("pa10"))
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.standard_normal((3, 50, model.robot.n_joints))
    values = rng.standard_normal(len(model.names))
    torque = model.inverse_dynamics(q, qd, qdd, values)
    error = float(np.abs(model.regressor(q, qd, qdd) @ values - torque).max() / np.abs(torque).max())
    seconds = time.perf_counter() - start
    if not error < 1e-10:
        return ("broken", f"torque and regressor differ by {error:.1e}; clear the cache and try again")
    return ("ok", f"numba {numba.__version__}, ready in {seconds:.1f} s")


def _blas() -> tuple[str, str]:
    from threadpoolctl import threadpool_info

    libraries = {
        f"{item['internal_api']} {item.get('version') or ''} ({item['num_threads']} threads)".replace("  ", " ")
        for item in threadpool_info()
        if item["user_api"] == "blas"
    }
    return ("ok", ", ".join(sorted(libraries)) or "not recognised")


def _simulation() -> tuple[str, str]:
    """MuJoCo's pendulum falls as a pendulum does."""
    try:
        import mujoco
    except ModuleNotFoundError:
        return ("absent", "the virtual robot needs it: pip install 'armid[sim]'")
    text = """<mujoco><worldbody><body><joint axis="0 1 0"/><inertial pos="0 0 -0.5" mass="2"
        diaginertia="0.1 0.1 0.1"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[0] = 0.3
    mujoco.mj_forward(model, data)
    expected = -2.0 * 9.81 * 0.5 * np.sin(0.3) / (0.1 + 2.0 * 0.25)
    if not np.isclose(data.qacc[0], expected, rtol=1e-9):
        return ("broken", f"a pendulum accelerates by {data.qacc[0]:g}, not {expected:g}")
    return ("ok", f"mujoco {mujoco.__version__}")


def _rendering() -> tuple[str, str]:
    """In a process of its own, since a missing display can end it."""
    if importlib.util.find_spec("mujoco") is None:
        return ("absent", "nothing in armid needs it")
    done = subprocess.run([sys.executable, "-c", _RENDER], capture_output=True, timeout=60, check=False)
    if done.returncode:
        words = "no OpenGL here; armid does not need it (for your own pictures try MUJOCO_GL=egl or osmesa)"
        return ("absent", words)
    return ("ok", "draws off screen")


def _compiler() -> tuple[str, str]:
    found = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if found is None:
        return ("absent", "exported C code cannot be proved on this machine")
    return ("ok", str(shutil.which(found)))
