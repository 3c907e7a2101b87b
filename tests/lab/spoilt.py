"""Spoilt NetworkPolicies: every way to leave out, widen or misspell a part of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Object = dict[str, Any]

_SIDES = {"ingress": "from", "egress": "to"}
_ANYONE: Object = {"namespaceSelector": {}}
_ANYWHERE: Object = {"ipBlock": {"cidr": "0.0.0.0/0"}}


def spoilt(policies: list[Object]) -> Iterator[tuple[str, list[Object]]]:
    """Yield a fault and the policies of one berth with the fault, for every fault."""
    for number, policy in enumerate(policies):
        before, after, name = policies[:number], policies[number + 1 :], policy["metadata"]["name"]
        yield f"no policy {name}", [*before, *after]
        for what, spec in _specs(policy["spec"]):
            yield f"{name}: {what}", [*before, {**policy, "spec": spec}, *after]


def _specs(spec: Object) -> Iterator[tuple[str, Object]]:
    """Yield spoilt copies of a policy's spec."""
    for kind in spec["policyTypes"]:
        # The API server gives types to a policy without any.
        if others := [one for one in spec["policyTypes"] if one != kind]:
            yield f"{kind} is not governed", {**spec, "policyTypes": others}
    for node_type in ("head", "worker"):
        selector = {"matchLabels": {"ray.io/node-type": node_type}}
        if spec["podSelector"] != selector:
            yield f"selects only {node_type}s", {**spec, "podSelector": selector}
    for way, side in _SIDES.items():
        if way.capitalize() not in spec["policyTypes"]:
            continue  # rules of a way that the policy does not govern have no effect
        rules = spec.get(way, [])
        yield f"{way} of anything", {**spec, way: [*rules, {}]}
        for peer in (_ANYONE, _ANYWHERE):
            yield f"{way} {side} {next(iter(peer))}", {**spec, way: [*rules, {side: [peer]}]}
        for number, rule in enumerate(rules):
            before, after = rules[:number], rules[number + 1 :]
            yield f"{way} rule {number} left out", {**spec, way: [*before, *after]}
            for what, changed in _rules(rule, side):
                yield f"{way} rule {number}: {what}", {**spec, way: [*before, changed, *after]}


def _rules(rule: Object, side: str) -> Iterator[tuple[str, Object]]:
    """Yield spoilt copies of a rule."""
    ports = rule.get("ports", [])
    if ports:
        yield "any port", {key: value for key, value in rule.items() if key != "ports"}
    for number, port in enumerate(ports):
        words, before, after = f"{port['port']}/{port['protocol']}", ports[:number], ports[number + 1 :]
        if len(ports) > 1:
            yield f"without {words}", {**rule, "ports": [*before, *after]}
        yield f"port after {words}", {**rule, "ports": [*before, {**port, "port": port["port"] + 1}, *after]}
    for number, peer in enumerate(rule[side]):
        before, after = rule[side][:number], rule[side][number + 1 :]
        if len(rule[side]) > 1:
            yield f"without peer {number}", {**rule, side: [*before, *after]}
        for what, changed in _peers(peer):
            yield f"peer {number} {what}", {**rule, side: [*before, changed, *after]}


def _peers(peer: Object) -> Iterator[tuple[str, Object]]:
    """Yield spoilt copies of a peer."""
    if "namespaceSelector" in peer or "podSelector" in peer:
        yield "of any namespace", {**peer, **_ANYONE}
    for cidr in peer.get("ipBlock", {}).get("except", []):
        changed = copy.deepcopy(peer)
        changed["ipBlock"]["except"].remove(cidr)
        yield f"with {cidr}", changed
