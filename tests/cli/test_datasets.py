"""`armid datasets` and the registry of published logs, without any network."""

import hashlib
import json
import urllib.error

import pytest

import armid as library
from armid.errors import ArmidError
from armid.logs.public import PublicFile, PublicLogs, download_https, public_log, public_logs
from armid.logs.recipe import recipe_names


def test_the_registry_is_complete():
    """Each entry names origin, licence, recipe, robot and files with checksums; addresses are HTTPS at a commit."""
    table = public_logs()
    assert set(table) == {"ur10e", "tx40", "xmate7p", "kr300"}
    for entry in table.values():
        assert entry.recipe in recipe_names()
        assert entry.licence
        assert entry.of_use("train")
        for file in entry.files:
            assert len(file.sha256) == 64
            for address in file.addresses:
                assert address.startswith(f"https://raw.githubusercontent.com/{entry.origin[19:]}/{entry.commit}/")
                assert " " not in address


@pytest.mark.parametrize("name", ["tx40", "xmate7p", "kr300"])
def test_descriptions_that_come_with_armid_load(name):
    """They are robots with friction, and their joints are those of the recipe."""
    from armid.logs import Recipe

    robot = library.load_robot(public_log(name).robot_path())
    assert robot.joint_names == Recipe.load(name).info.joints


def test_copies_are_the_published_files(data):
    """Every file of the local folder has the checksum of the registry."""
    for entry in public_logs().values():
        assert {file.state(data / entry.name) for file in entry.files} == {"there"}
        assert entry.robot_path(data).is_file()


def test_list_and_show(armid, tmp_path, monkeypatch):
    """All in a table, one with the commands that use it; JSON says what is there."""
    monkeypatch.delenv("ARMID_DATA", raising=False)
    listed = armid("datasets")
    assert listed.code == 0
    assert "xmate7p" in listed.out
    shown = armid("datasets", "kr300")
    assert "armid identify" in shown.out
    assert "--prior" in shown.out
    (tmp_path / "tx40").mkdir()
    (tmp_path / "tx40" / "curr_data.csv").write_text("something else")
    data = json.loads(armid("datasets", "tx40", "--folder", tmp_path, "--json").out)
    states = {file["name"]: file["state"] for file in data["datasets"][0]["files"]}
    assert states["curr_data.csv"] == "different"
    assert states["pos_read_data.csv"] == "missing"


def test_bad_input(armid, monkeypatch):
    """An unknown name, a fetch without name or folder."""
    monkeypatch.delenv("ARMID_DATA", raising=False)
    assert "did you mean 'tx40'" in armid("datasets", "tx4").err
    assert armid("datasets", "--fetch").code == 2
    assert "--folder" in armid("datasets", "tx40", "--fetch").err


@pytest.fixture
def entry():
    """A data set of one file that lies at the second of two addresses."""
    content = b"1,2,3"
    digest = hashlib.sha256(content).hexdigest()
    file = PublicFile("log.csv", "train", len(content), digest, ("https://a/1", "https://a/2"))
    other = PublicFile("only-here.csv", "reference", 1, "0" * 64, ())
    return PublicLogs("arm", "an arm", "https://a", "1", "MIT", "tx40", "armid:tx40.yaml", "", (file, other))


def test_fetch_tries_addresses_and_checks(entry, tmp_path):
    """The first address fails, the second has the file; a second fetch has nothing to do."""
    asked = []

    def download(address, most):
        asked.append(address)
        if address.endswith("1"):
            raise urllib.error.URLError("not found")
        return b"1,2,3"[:most]

    assert entry.fetch(tmp_path, download) == [tmp_path / "arm" / "log.csv"]
    assert (tmp_path / "arm" / "log.csv").read_bytes() == b"1,2,3"
    assert asked == ["https://a/1", "https://a/2"]
    assert entry.fetch(tmp_path, download) == []


def test_a_wrong_file_is_not_kept(entry, tmp_path):
    """Another content, however long, is refused, and nothing is left; a wrong local file is not overwritten."""
    with pytest.raises(ArmidError, match="checksum differs"):
        entry.fetch(tmp_path, lambda address, most: b"x" * most)
    assert not (tmp_path / "arm" / "log.csv").exists()
    (tmp_path / "arm").mkdir(exist_ok=True)
    (tmp_path / "arm" / "log.csv").write_bytes(b"mine")
    with pytest.raises(ArmidError, match="remove it"):
        entry.fetch(tmp_path, lambda address, most: b"1,2,3")


def test_only_https():
    """Other addresses are refused before anything is opened."""
    for address in ("http://a/b", "file:///etc/passwd"):
        with pytest.raises(ArmidError, match="HTTPS"):
            download_https(address, 10)
