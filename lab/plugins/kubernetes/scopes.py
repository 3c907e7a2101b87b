"""Which kinds of Kubernetes live in no namespace, for previews that cannot ask the server.

Source: the `+genclient:nonNamespaced` marks of the Kubernetes 1.36 API types (staging/src/k8s.io/api and apiextensions).

Answers to (read): kubernetes v1.36.3, the `+genclient:nonNamespaced` marks of staging/src/k8s.io/api:
    https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/api
"""

from __future__ import annotations

_CLUSTER_KINDS = frozenset(
    {
        "APIService",
        "CSIDriver",
        "CSINode",
        "CertificateSigningRequest",
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterTrustBundle",
        "ComponentStatus",
        "CustomResourceDefinition",
        "DeviceClass",
        "DeviceTaintRule",
        "FlowSchema",
        "IPAddress",
        "IngressClass",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "PriorityLevelConfiguration",
        "ResourceSlice",
        "RuntimeClass",
        "SelfSubjectAccessReview",
        "SelfSubjectReview",
        "ServiceCIDR",
        "StorageClass",
        "StorageVersionMigration",
        "SubjectAccessReview",
        "TokenReview",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "VolumeAttachment",
        "VolumeAttributesClass",
    }
)


def is_namespaced(kind: str) -> bool:
    """Whether objects of a kind live in namespaces; kinds that are not Kubernetes' own are taken to."""
    return kind not in _CLUSTER_KINDS
