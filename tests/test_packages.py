"""The layout of the package: who may import whom, sizes of modules, and what the wheel holds."""

import ast
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import armid

ROOT = Path(__file__).parents[1]
SOURCE = Path(armid.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
BY_NAME = {SOURCE / "registry.py", SOURCE / "notes.py"}  # import what others name, which no rule can see
OPEN_TO_ALL = {
    "arrays",
    "compiling",
    "display",
    "errors",
    "escaping",
    "figures",
    "files",
    "notes",
    "progress",
    "registry",
    "theme",
    "_version",
}
BY_NAME = {"notes", "registry"}  # look up words and things of any package when somebody asks for them


def documented_order():
    """The packages in the order that CONTRIBUTING.md gives."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    return re.findall(r"`(\w+)`", re.search(r"`\w+` →.*?\n\n", text, re.DOTALL).group())


def imports(source, module):
    """Dotted names of everything that a module imports, at any depth; `module` is its own dotted name."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=name, names=names, level=level):
                start = module.rsplit(".", level)[0] if level else ""
                base = ".".join(part for part in (start, name) if part)
                yield from (f"{base}.{alias.name}" for alias in names)
            case ast.Call(func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"), args=[first, *_]):
                yield first.value if isinstance(first, ast.Constant) else "armid"


def violations(source, module):
    """Imports that the rule forbids. A package sees itself, packages before it, and what is open to all."""
    order = documented_order()
    package = module.split(".")[1]
    allowed = OPEN_TO_ALL | set(order[: order.index(package) + 1]) if package in order else OPEN_TO_ALL
    if package == "cli":
        return []
    found = [name.split(".") for name in imports(source, module) if name.split(".")[0] == "armid"]
    if package in BY_NAME:
        found = [name for name in found if len(name) > 1]
    return [".".join(name) for name in found if len(name) < 2 or name[1] not in allowed]


def dotted(path):
    """Module name of a file, with `__init__` kept so that relative imports resolve."""
    return ".".join(("armid", *path.relative_to(SOURCE).with_suffix("").parts))


def test_every_package_has_its_place_in_the_order():
    """No folder is missing in CONTRIBUTING.md, and the order starts and ends where the procedure does."""
    order = documented_order()
    folders = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert folders <= set(order)
    assert (order[0], order[-1]) == ("robot", "cli")


def test_packages_import_only_from_packages_before_them():
    """The import rule, including imports inside functions and for type checking."""
    checked = [p for p in MODULES if p.parent != SOURCE or not p.stem.startswith("__")]
    found = {dotted(path): violations(path.read_text("utf-8"), dotted(path)) for path in checked}
    assert {module: wrong for module, wrong in found.items() if wrong} == {}


def imported_first(source, module):
    """Modules and names of armid that are imported while a module is itself being imported."""
    within = [node for node in ast.parse(source).body if not _for_types_only(node)]
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    tree = ast.Module([node for node in within if not isinstance(node, functions)], [])
    return {name for name in imports(ast.unparse(tree), module) if name.startswith("armid.")}


def _for_types_only(node):
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def cycles(graph):
    """Modules that import one another, directly or not."""
    graph = {name: set(others) - {name} for name, others in graph.items()}
    while free := {name for name, others in graph.items() if not others & set(graph)}:
        graph = {name: others for name, others in graph.items() if name not in free}
    while loose := {name for name in graph if not any(name in others for others in graph.values())}:
        graph = {name: others for name, others in graph.items() if name not in loose}
    return sorted(graph)


def test_modules_of_a_package_do_not_import_one_another_in_a_circle():
    """Within a package, too, data flow one way; what a function imports when it is called does not count."""
    names = {dotted(path).removesuffix(".__init__") for path in MODULES}
    graph = {}
    for path in MODULES:
        module = dotted(path).removesuffix(".__init__")
        package = module.split(".")[1:2]
        wanted = imported_first(path.read_text("utf-8"), dotted(path))
        modules = {name if name in names else name.rpartition(".")[0] for name in wanted}
        graph[module] = {one for one in modules if one.split(".")[1:2] == package and one != module}
    assert cycles(graph) == []
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["b", "c"]


def test_a_class_name_says_which_class_is_meant():
    """No two classes of one name."""
    homes = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(dotted(path))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


@pytest.mark.parametrize(
    "line",
    [
        "import armid.cli",
        "from armid.dynamics import Model",
        "from armid import dynamics",
        "from armid import load_robot",
        "import armid",
        "from ..dynamics.model import Model",
        "from .. import cli",
        "def f():\n    from armid.excitation import Fourier",
        "if TYPE_CHECKING:\n    from armid.dynamics import Model",
        "import importlib\nimportlib.import_module('armid.cli')",
    ],
)
def test_the_rule_catches_a_violation(line):
    """A planted import of a later package is found, however it is written."""
    assert violations(line, "armid.robot.planted")


@pytest.mark.parametrize(
    "line",
    [
        "from armid.errors import ArmidError",
        "from .dh import DHRow",
        "import numpy",
        "from armid.robot import Friction",
    ],
)
def test_the_rule_lets_good_imports_pass(line):
    """Own package, errors and other libraries are fine; so is everything for the command line."""
    assert violations(line, "armid.robot.planted") == []
    assert violations("from armid.robot import load_robot", "armid.dynamics.planted") == []
    assert violations("from armid.dynamics import Model", "armid.cli.planted") == []


def test_modules_are_short_and_say_what_they_are():
    """At most 500 lines, and a docstring at the top."""
    texts = {dotted(path): path.read_text("utf-8") for path in MODULES}
    assert [module for module, text in texts.items() if len(text.splitlines()) > 500] == []
    assert [module for module, text in texts.items() if not ast.get_docstring(ast.parse(text))] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel built from this tree, without network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    (path,) = folder.glob("*.whl")
    return path


def test_wheel_holds_the_package_and_its_robots(wheel):
    """Every module and every robot of the library is inside, and nothing but the package."""
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
        scripts = archive.read(f"armid-{armid.__version__}.dist-info/entry_points.txt").decode()
    tree = ROOT / "src"
    kinds = (".py", ".pyi", ".typed", ".yaml", ".js", ".css", ".h", ".c", ".txt")
    wanted = {str(path.relative_to(tree)) for path in (tree / "armid").rglob("*") if path.suffix in kinds}
    assert sum(name.endswith(".yaml") for name in wanted) >= 6
    assert {name for name in inside if ".dist-info/" not in name} == wanted
    assert "armid = armid.__main__:main" in scripts


@pytest.mark.prove
def test_wheel_works_in_an_empty_environment(wheel, tmp_path):
    """Installed with its dependencies alone, armid lists its robots and models one, away from the source tree."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    bin_folder = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    subprocess.run([bin_folder / "python", "-m", "pip", "install", "--quiet", wheel], check=True)
    for command, words in ((("robots",), "powerball"), (("model", "pa10"), "21 base + 84 friction")):
        result = subprocess.run(
            [bin_folder / "armid", *command],
            cwd=tmp_path,
            env={"PATH": str(bin_folder)},
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        assert words in result.stdout
