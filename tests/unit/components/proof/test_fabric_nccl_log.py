import pytest

from berth.components.proof.fabric.nccl_log import (
    ProcessLog,
    Transport,
    Way,
    parse_log,
    transport_of,
)
from tests.unit.cases import table
from tests.unit.components.proof.fabric_evidence import PODS, logs_of


def read(case: str) -> dict[str, list[ProcessLog]]:
    return {pod: [parse_log(log) for log in item] for pod, item in logs_of(case).items()}


def transport(case: str) -> Transport:
    return transport_of(read(case))


@pytest.mark.parametrize(("case", "way", "networks"), table(__file__, "fabric_nccl_log.yaml"))
def test_the_way_of_each_case(case: str, way: Way, networks: dict[str, int]) -> None:
    found = transport(case)
    assert (found.way, found.networks) == (way, networks)


def test_nics_by_pod() -> None:
    assert transport("good").nics == dict.fromkeys(PODS, ("mlx5_0", "mlx5_1"))
    assert transport("half-the-nics").nics == dict.fromkeys(PODS, ("mlx5_0",))
    assert transport("tcp-fallback").nics == dict.fromkeys(PODS, ("eth0",))


def test_what_stays_within_a_pod_is_with_fingerprint() -> None:
    assert transport("good").within == {"p2p": 8}


def test_what_a_log_says_beside_the_way() -> None:
    log = read("good")[PODS[0]][0]
    assert (log.version, log.network, log.gib) == ("2.28.3+cuda12.8", "gIB", "v1.1.2")
    assert log.choices == {
        2**10: ("RING", "LL"),
        2**20: ("TREE", "LL128"),
        2**28: ("RING", "SIMPLE"),
        2**30: ("RING", "SIMPLE"),
    }
    assert (log.no_plugin, log.tuner_problems, log.mismatches) == ((), (), ())


def test_what_went_wrong_is_quoted() -> None:
    assert read("wrong-plugin")[PODS[0]][0].no_plugin == (
        "NET/Plugin: Could not find: libnccl-net.so",
    )
    assert (
        read("no-tuner-config")[PODS[0]][0]
        .tuner_problems[0]
        .startswith("TUNER/gIB: No NCCL_TUNER_CONFIG_PATH")
    )
    (mismatch,) = read("mismatched-nccl")[PODS[0]][0].mismatches
    assert (
        mismatch == "Mismatched NCCL version detected : rank 0 version 22803 rank 2 version 22501"
    )
    lines = read("plugin-not-found")[PODS[0]][0].no_plugin
    assert any("Failed to initialize any NET plugin" in line for line in lines)


@pytest.mark.parametrize("cut", range(4))
def test_a_log_that_breaks_off_is_never_good(cut: int) -> None:
    """Whichever process it is, and after whichever line before its connections were all made."""
    for lines in range(len(logs_of("good")[PODS[0]][0].splitlines())):
        logs = [log for value in logs_of("good").values() for log in value]
        remaining = logs[cut].splitlines()[:lines]
        if any("Connected all rings" in line for line in remaining):
            break
        logs[cut] = "\n".join(remaining)
        broken = {
            PODS[0]: [parse_log(log) for log in logs[:2]],
            PODS[1]: [parse_log(log) for log in logs[2:]],
        }
        assert transport_of(broken).way == "unknown", f"after line {lines}"
    else:
        pytest.fail("the log never came to its end")


@pytest.mark.parametrize(
    "logs", [{}, {PODS[0]: []}, {PODS[0]: [""], PODS[1]: [""]}, {PODS[0]: ["nonsense\n"]}]
)
def test_no_log_is_unknown(logs: dict[str, list[str]]) -> None:
    assert (
        transport_of({pod: [parse_log(log) for log in item] for pod, item in logs.items()}).way
        == "unknown"
    )


def test_one_bad_connection_among_good_ones_counts() -> None:
    logs = logs_of("good")
    for bad, way in (
        ("NET/gIB/0", "staged"),
        ("NET/Socket/0", "tcp"),
        ("NET/IB/0/GDRDMA", "other plugin"),
    ):
        one = [logs[PODS[0]][0].replace("NET/gIB/0/GDRDMA", bad, 1), *logs[PODS[0]][1:]]
        mixed = {
            PODS[0]: [parse_log(log) for log in one],
            PODS[1]: [parse_log(log) for log in logs[PODS[1]]],
        }
        assert transport_of(mixed).way == way


def test_a_pod_that_no_connection_leaves_is_not_good() -> None:
    logs = {pod: [parse_log(log) for log in item] for pod, item in logs_of("good").items()}
    alone = [
        parse_log("\n".join(line for line in log.splitlines() if "via NET" not in line))
        for log in logs_of("good")[PODS[0]]
    ]
    assert transport_of({**logs, PODS[0]: alone}).way == "unknown"
    assert transport_of({PODS[0]: alone}).way == "none"


@pytest.mark.parametrize(
    ("line", "network", "device", "direct"), table(__file__, "nccl_connections.yaml")
)
def test_forms_of_a_connection(line: str, network: str, device: int, *, direct: bool) -> None:
    assert parse_log(f"pod:1:2 [0] NCCL INFO {line}").between == (
        (f"{network}/GDRDMA" if direct else network, device),
    )


def test_algorithms_as_numbers_of_older_versions() -> None:
    log = parse_log("pod:1:2 [0] NCCL INFO AllReduce: 8388608 Bytes -> Algo 1 proto 2 time 57.8")
    assert log.choices == {2**23: ("RING", "SIMPLE")}


def test_nics_that_nccl_joined_are_counted_one_by_one() -> None:
    logs = logs_of("good")
    joined = {
        pod: [parse_log(log.replace("'mlx5_0'", "'mlx5_0+mlx5_2'")) for log in item]
        for pod, item in logs.items()
    }
    assert transport_of(joined).nics[PODS[0]] == ("mlx5_0", "mlx5_1", "mlx5_2")
