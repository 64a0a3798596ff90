"""ROS 2 bags and MCAP files as robots record them: joint states by name."""

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from armid.logs import LogError, Recipe, open_log, read_log, write_log
from armid.logs.log import concatenate
from tests.logs.samples import random_log

STORE = get_typestore(Stores.ROS2_HUMBLE)
TYPES = STORE.types
KIND = "sensor_msgs/msg/JointState"
START = 1_700_000_000_123_456_789


def state(names, values, stamp):
    header = TYPES["std_msgs/msg/Header"](TYPES["builtin_interfaces/msg/Time"](*divmod(stamp, 10**9)), "base")
    arrays = [np.ascontiguousarray(part, dtype=float) for part in values]
    return TYPES[KIND](header, list(names), *arrays)


def record(folder, messages, plugin=StoragePlugin.MCAP, topics=("/joint_states",), other=()):
    """A bag of (topic number, message, time of recording [ns])."""
    with Writer(folder, version=8, storage_plugin=plugin) as writer:
        connections = [writer.add_connection(topic, KIND, typestore=STORE) for topic in topics]
        strings = [writer.add_connection(topic, "std_msgs/msg/String", typestore=STORE) for topic in other]
        for connection in strings:
            raw = STORE.serialize_cdr(TYPES["std_msgs/msg/String"]("hello"), "std_msgs/msg/String")
            writer.write(connection, START, raw)
        for number, message, when in messages:
            writer.write(connections[number], when, STORE.serialize_cdr(message, KIND))
    return folder


def shuffled(joints, samples=40, seed=0, recorded=1_000):
    """Joint states that list their joints in another order each time, and the truth in the order of `joints`."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((samples, 3, len(joints)))
    messages = []
    for index, values in enumerate(truth):
        order = rng.permutation(len(joints)) if index else np.arange(len(joints))
        stamp = START + index * 2_000_001
        messages.append((0, state([joints[i] for i in order], values[:, order], stamp), stamp + recorded))
    return truth, messages


@pytest.mark.parametrize("plugin", [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
@pytest.mark.parametrize("whole_folder", [True, False])
def test_joints_go_by_name(tmp_path, plugin, whole_folder):
    """Messages that list joints in changing order give columns in one order; times come from the stamps."""
    truth, messages = shuffled(["c", "a", "b"])
    path = record(tmp_path / "bag", messages, plugin, other=("/rosout",))
    if not whole_folder:
        path = next(item for item in path.iterdir() if item.suffix in (".mcap", ".db3"))
    log = read_log(path, effort="joint torque")
    assert log.joints == ("c", "a", "b")
    for index, channel in enumerate(("position", "velocity", "effort")):
        np.testing.assert_array_equal(log[channel], truth[:, index])
    np.testing.assert_allclose(log.time, np.arange(40) * 0.002000001, rtol=1e-15)
    assert log.info.history == {"start_ns": START}


def test_a_recipe_chooses_joints_and_converts(tmp_path):
    """The joints of the recipe in its order; gears and offsets as in any recipe."""
    truth, messages = shuffled(["gripper", "x", "y"])
    path = record(tmp_path / "bag", messages)
    text = "joints: [y, x]\neffort: motor torque\ngear_ratio: [10, 20]\noffset: [1, 0]\nrobot: arm"
    log = read_log(path, Recipe.parse(text))
    np.testing.assert_allclose(log["effort"], truth[:, 2][:, [2, 1]] * [10, 20])
    np.testing.assert_allclose(log["position"], truth[:, 0][:, [2, 1]] + [1, 0])
    assert (log.joints, log.info.effort, log.info.robot) == (("y", "x"), "joint torque", "arm")


def test_effort_may_be_current(tmp_path):
    """ROS has one field for it; the recipe or the keyword says that it holds currents."""
    truth, messages = shuffled(["x", "y"])
    path = record(tmp_path / "bag", messages)
    log = read_log(path, effort="current")
    assert set(log.channels) == {"position", "velocity", "current"}
    np.testing.assert_array_equal(log["current"], truth[:, 2])
    log = read_log(path, Recipe.parse("joints: [x, y]\neffort: current\nunits: {current: mA}\ncurrent_gain: [2, 3]"))
    np.testing.assert_allclose(log["effort"], truth[:, 2] / 1000 * [2, 3])


def test_effort_is_torque_unless_something_else_is_said(tmp_path):
    """A bag needs no recipe: the definition of its messages says what an effort is."""
    truth, messages = shuffled(["x"])
    log = read_log(record(tmp_path / "bag", messages))
    assert log.info.effort == "joint torque"
    np.testing.assert_allclose(log["effort"], truth[:, 2])


def test_two_publishers_on_one_topic(tmp_path):
    """Messages of a gripper are passed over when the recipe names the arm's joints; without, the user has to choose."""
    truth, messages = shuffled(["x", "y"], samples=5)
    grip = [(0, state(["finger"], [[0.1], [], []], START + k * 1000), START + k * 1000) for k in range(5)]
    mixed = [message for pair in zip(grip, messages, strict=True) for message in pair]
    path = record(tmp_path / "bag", mixed)
    log = read_log(path, Recipe.parse("joints: [x, y]\neffort: joint torque"))
    np.testing.assert_array_equal(log["effort"], truth[:, 2])
    with pytest.raises(LogError, match="has the joint 'x', which the first message lacks; name the wanted joints"):
        read_log(path, effort="joint torque")


def test_partial_messages(tmp_path):
    """A joint or a field that a message lacks is NaN."""
    messages = [
        (0, state(["x", "y"], [[1, 2], [3, 4], [5, 6]], START), START),
        (0, state(["y"], [[7], [8], [9]], START + 10), START + 10),
        (0, state(["y", "x"], [[2, 1], [], [6, 5]], START + 20), START + 20),
    ]
    log = read_log(record(tmp_path / "bag", messages), effort="joint torque")
    np.testing.assert_array_equal(log["position"], [[1, 2], [np.nan, 7], [1, 2]])
    np.testing.assert_array_equal(log["velocity"], [[3, 4], [np.nan, 8], [np.nan, np.nan]])
    np.testing.assert_array_equal(log["effort"], [[5, 6], [np.nan, 9], [5, 6]])


def test_positions_alone_need_no_effort(tmp_path):
    """Without the field there is nothing to explain."""
    messages = [(0, state(["x"], [[k], [], []], START + k), START + k) for k in range(3)]
    log = read_log(record(tmp_path / "bag", messages))
    assert (log.info.effort, set(log.channels)) == ("none", {"position"})


def test_headers_without_stamp(tmp_path):
    """Then the time of recording counts."""
    messages = [(0, state(["x"], [[k], [], []], 0), START + k * 10**6) for k in range(4)]
    np.testing.assert_allclose(read_log(record(tmp_path / "bag", messages)).time, [0, 0.001, 0.002, 0.003], rtol=1e-12)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_blocks(tmp_path, size):
    """Blocks of any size give the whole."""
    truth, messages = shuffled(["x", "y"])
    stream = open_log(record(tmp_path / "bag", messages), effort="joint torque")
    blocks = list(stream.blocks(size))
    assert max(map(len, blocks)) <= size
    np.testing.assert_array_equal(concatenate(blocks)["effort"], truth[:, 2])


def test_several_topics(tmp_path):
    """The user chooses one in a recipe; a wrong name is answered with those there are."""
    truth, messages = shuffled(["x"])
    path = record(
        tmp_path / "bag", [(1, *rest) for _, *rest in messages], topics=("/left/joint_states", "/right/joint_states")
    )
    with pytest.raises(
        LogError, match="topic: must be chosen in a recipe, there are several: /left/joint_states, /right"
    ):
        read_log(path, effort="joint torque")
    text = "joints: [x]\neffort: joint torque\ntopic: "
    log = read_log(path, Recipe.parse(text + "/right/joint_states"))
    np.testing.assert_array_equal(log["effort"], truth[:, 2])
    with pytest.raises(LogError, match="'/rigt/joint_states' is no topic with joint states, did you mean '/right"):
        read_log(path, Recipe.parse(text + "/rigt/joint_states"))
    with pytest.raises(LogError, match="/left/joint_states: holds no joint states"):
        read_log(path, Recipe.parse("joints: [x]\neffort: joint torque\ntopic: /left/joint_states"))


def test_unknown_joint(tmp_path):
    """A joint that no message has is named, with the nearest and all there are."""
    path = record(tmp_path / "bag", shuffled(["shoulder", "elbow"])[1])
    with pytest.raises(LogError, match="joints: 'elbw' is not in the joint states, did you mean 'elbow'"):
        read_log(path, Recipe.parse("joints: [elbw]\neffort: joint torque"))


def test_bags_without_joint_states(tmp_path):
    """The topics that are there are listed; an empty topic is said to be empty."""
    with pytest.raises(LogError, match=r"holds no joint states .*; its topics are: /rosout"):
        read_log(record(tmp_path / "one", [], topics=(), other=("/rosout",)), effort="none")
    with pytest.raises(LogError, match="/joint_states: holds no joint states"):
        read_log(record(tmp_path / "two", []), effort="none")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (lambda: state(["x", "y"], [[1], [1, 2], [1, 2]], START), "message 1: has 1 values of position for 2 joints"),
        (lambda: state(["x", "x"], [[1, 2], [1, 2], [1, 2]], START), "message 1: names a joint twice"),
    ],
)
def test_messages_that_contradict_themselves(tmp_path, message, said):
    """More or fewer values than joints, a joint twice."""
    with pytest.raises(LogError, match=said):
        read_log(record(tmp_path / "bag", [(0, message(), START)]), Recipe.parse("joints: [x]\neffort: joint torque"))


def message_of(path):
    """The error that reading gives, None if it gives none."""
    try:
        read_log(path)
    except LogError as error:
        return str(error)
    return None


def test_cut_off_damaged_and_foreign_files(tmp_path):
    """Any prefix of an MCAP file, text with that suffix: one sentence each; a changed byte is found or does no harm."""
    log = random_log(samples=300)
    write_log(log, tmp_path / "log.mcap")
    whole = (tmp_path / "log.mcap").read_bytes()
    rng = np.random.default_rng(0)
    broken = [whole[:cut] for cut in (0, 5, 9, 40, 200, len(whole) // 2, len(whole) - 1)]
    for _ in range(40):
        changed = bytearray(whole)
        changed[int(rng.integers(len(whole)))] ^= int(rng.integers(1, 256))
        broken.append(bytes(changed))
    broken += [b"time,position.a\n0,1\n", rng.bytes(4000), whole[:100] + rng.bytes(3000) + whole[-100:]]
    path = tmp_path / "x.mcap"
    refused = 0
    for content in broken:
        path.write_bytes(content)
        said = message_of(path)
        if said is None:
            np.testing.assert_array_equal(read_log(path)["effort"], log["effort"])
        else:
            assert said.startswith(str(path))
            assert "\n" not in said
            refused += 1
    assert refused >= 20


def test_folders_that_are_no_bags(tmp_path):
    """A folder without metadata, and one whose metadata is nonsense."""
    (tmp_path / "bag").mkdir()
    with pytest.raises(LogError, match=r"is a folder without metadata.yaml, so not a ROS 2 bag"):
        read_log(tmp_path / "bag")
    for text in ("", "hello", "rosbag2_bagfile_information: {version: 99}", "[", "\x00"):
        (tmp_path / "bag" / "metadata.yaml").write_text(text)
        with pytest.raises(LogError, match="cannot be read as a ROS 2 bag"):
            read_log(tmp_path / "bag")
