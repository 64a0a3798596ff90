"""What the command line says of words it does not know: one sentence with the nearest name and where to read on."""

import pytest

from armid.cli import main
from armid.cli.arguments import commands_of
from armid.cli.main import parser

WRONG = {  # what is typed, who complains and how
    "idnetify": "armid: error: command 'idnetify' is not known, did you mean 'identify'? See `armid --help`",
    "xyz": "armid: error: command 'xyz' is not known; see `armid --help`",
    "": "armid: error: COMMAND is missing; see `armid --help`",
    "--quiet robots": "armid: error: --quiet is an option of commands and stands after one, as in `armid COMMAND "
    "--quiet`; see `armid --help`",
    "identify arm.yaml log.parquet --foo": "armid identify: error: option --foo is not known; see `armid identify "
    "--help`",
    "identify --methd=wls": "armid identify: error: option --methd is not known, did you mean '--method'? See `armid "
    "identify --help`",
    "identify pa10": "armid identify: error: LOG is missing; see `armid identify --help`",
    "identify pa10 --joints a log.csv": "armid identify: error: LOG is missing (it stands before --joints, which takes "
    "all words after it); see `armid identify --help`",
    "identify": "armid identify: error: ROBOT and LOG are missing; see `armid identify --help`",
    "model pa10 more words": "armid model: error: 'more words' is more than is taken; see `armid model --help`",
    "model pa10 --links two": "armid model: error: --links: 'two' is not a whole number; see `armid model --help`",
    "friction pa10 --grid pa11": "armid friction: error: --grid 'pa11' is not known, did you mean 'pa10'? See `armid "
    "friction --help`",
    "fleet identfy": "armid fleet: error: action 'identfy' is not known, did you mean 'identify'? See `armid fleet "
    "--help`",
    "fleet identify --wrkers 2": "armid fleet identify: error: option --wrkers is not known, did you mean "
    "'--workers'? See `armid fleet identify --help`",
}


@pytest.mark.parametrize("typed", WRONG)
def test_one_sentence(capsys, typed):
    """Exit code 2, one line on standard error, nothing on standard output."""
    with pytest.raises(SystemExit) as end:
        main(typed.split())
    assert end.value.code == 2
    assert capsys.readouterr() == ("", WRONG[typed] + "\n")


def test_what_is_right_stays_right(capsys):
    """Negative numbers, abbreviated options, values with an equals sign and help beside nonsense are no mistakes."""
    assert main(["model", "pa10", "--gravity", "0", "0", "-9.81", "--link=2", "--quiet"]) == 0
    with pytest.raises(SystemExit) as end:
        main(["model", "--nonsense", "--help"])
    assert end.value.code == 0
    assert "usage: armid model" in capsys.readouterr().out


def numeric_options():
    """Every option of every command that takes numbers: (command words, option, how many)."""
    todo, found = [((), parser())], []
    while todo:
        words, one = todo.pop()
        todo += [((*words, name), command.fill()) for name, command in commands_of(one).items()]
        for action in one._actions:
            if action.type in (int, float) and action.option_strings:
                found.append((words, action.option_strings[0], action.nargs if isinstance(action.nargs, int) else 1))
    return found


def test_numbers_are_finite_everywhere(capsys):
    """No command takes nan, inf or 1e300 for a number."""
    options = numeric_options()
    assert len(options) > 60
    for words, option, count in options:
        for value in ("nan", "inf", "1e300"):
            with pytest.raises(SystemExit) as end:
                main([*words, f"{option}={value}"] if count == 1 else [*words, option, *[value] * count])
            assert end.value.code == 2
            out, err = capsys.readouterr()
            assert out == ""
            assert option in err, (words, option, value, err)
            assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("typed", "limit"),
    [
        ("simulate er16 --points 4 --seed -1", "--seed -1: must be at least 0"),
        ("friction ir361 --seconds 1e18", "--seconds 1e18: must be at most 3600"),
        ("friction ir361 --warm-up 1e18", "--warm-up 1e18: must be at most"),  # an old spelling
        ("warmup ir361 --cycle 1e-9", "--cycle 1e-9: must be at least 0.1"),
        ("simulate er16 --points 4 --bandwidth 0", "--bandwidth 0: must be at least"),
        ("predict fit.json plan.json --level 2", "--level 2: must be at most 1"),
    ],
)
def test_numbers_beyond_use(capsys, typed, limit):
    """Ranges of units, and those of single options."""
    assert main(typed.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"armid: error: {limit}")
    assert err.count("\n") == 1
