"""Passing messages of Pulumi's kubernetes plugin about one object, in berth's words. Pure.

The plugin's words are in pulumi-kubernetes 4.25, provider/pkg/await (its awaiters and conditions),
and in sigs.k8s.io/cli-utils 0.37, pkg/kstatus/status, which it asks for the state of an object. A
message that is not in the table, such as an error of the API server, is shown as it is.
"""

import re
from collections.abc import Mapping

_NOT_SEEN = "its controller has not seen the change yet"
_ADDRESS = "waits for an address"

_WORDS: Mapping[str, str] = {
    # What the plan or the line of a done component says already.
    r"": "",
    r"Skipping await logic": "",  # condition/immediate.go: an object that nobody waits for
    r"Resource scheduled for deletion": "",  # kstatus: the deletion has begun
    r"✅.*|\w+ initialization complete": "",  # the last message of each awaiter
    r"Resource is (current|always ready|Ready).*": "",  # kstatus
    r"Service is ready|Pod is Ready|PVC is Bound|CRD is established": "",  # kstatus
    r"(All replicas scheduled as expected|\w+ is available)\. Replicas: \d+": "",  # kstatus
    r"Job Completed\. .*": "",  # kstatus
    # What is waited for.
    r"Waiting for readiness": "is not ready yet",  # condition/ready.go
    r"Retry #\d+; creation failed: (.*)": r"not created yet, and tried again: \1",  # await.go
    r"\S+ generation is \d+, but latest observed generation is \d+": _NOT_SEEN,  # kstatus
    r"\[2/3\] Waiting for StatefulSet to update .*": _NOT_SEEN,  # statefulset.go
    r"\[1/3\] Finding Pods to direct traffic to": "waits for its pods",  # service.go
    r"\[2/3\] Attempting to allocate IP address to Service": _ADDRESS,  # service.go
    r"\[1/3\] Finding a matching service for each Ingress path": "waits for its Services",
    r"\[2/3\] Waiting for update of \.status\.loadBalancer.*": _ADDRESS,  # ingress.go
    # deployment.go and statefulset.go, then kstatus.
    r".*\((\d+)/(\d+) Pods (?:ready|available)\)": r"\1 of \2 pods ready",
    r"(?:Ready|Available): (\d+)/(\d+)": r"\1 of \2 pods ready",
    r"(?:[Uu]pdated): (\d+)/(\d+)": r"\1 of \2 pods updated",
    r"(?:[Cc]urrent|Replicas|Labelled): (\d+)/(\d+)": r"\1 of \2 pods created",
    r"Pending termination: (\d+)": r"old pods that have yet to end: \1",
    r"PVC is not Bound\. phase: \w+": "waits for its disk",
}
"""Words for the messages that a pattern matches as a whole; empty for what is no news."""
_PATTERNS = {re.compile(pattern, re.DOTALL): words for pattern, words in _WORDS.items()}


def words_of_plugin(message: str) -> str:
    """Return a message of the plugin in berth's words; empty for what is no news."""
    text = message.strip()
    for pattern, words in _PATTERNS.items():
        if found := pattern.fullmatch(text):
            return found.expand(words)
    return text
