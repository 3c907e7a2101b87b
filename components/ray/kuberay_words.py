"""Hints for keys of KubeRay, and of other tools, that settings do not have: what berth has instead.

A test holds them to the keys of KubeRay's own definitions.
"""

from collections.abc import Mapping

_WORKERS = "write `workers`, the number of worker pods"
_BOUNDS = "write the bounds under `workers`: workers: {min: 0, max: 4}"
_START = (
    "Ray's start parameters are `head.rayCpus`, `head.rayGpus`, `worker.rayGpus`,"
    " `worker.rayResources` and `worker.labels`; others have no setting: a function of your image"
    " sets them by `env: {RAY_START_HOOK: MODULE.FUNCTION}`"
)
_SERVICE = (
    "the head's Service stays as KubeRay makes it; write `dashboard: internal` for clients in the"
    " VPC, and `services` for Ray Serve"
)
_RESOURCES = "Ray counts what the pod has; write `rayCpus`, `rayGpus` or `rayResources` otherwise"
_HANDED_OVER = "only KubeRay's operator runs objects of a berth; take it out"
_SUSPEND = "berth suspend NAME suspends it, and `lifecycle` by hours; take it out"
_TEMPLATE = "write `cpu`, `memory`, `env`, and `podTemplate` for other fields of the pod"
_OBJECT = "write what is under `spec`, in berth's words"
_METADATA = (
    "berth sets labels and annotations of its objects, so that those of queues and of other"
    " schedulers have no setting; write `podTemplate.metadata` of head and worker for those of pods"
)
_NETWORK = "berth writes the NetworkPolicies; see `isolation`"
_NO_SETTING = "there is no setting for it; take it out"

OF_CLUSTERS: Mapping[str, str] = {
    "apiVersion": _OBJECT,
    "kind": _OBJECT,
    "spec": _OBJECT,
    "metadata": _METADATA,
    "labels": _METADATA,
    "annotations": _METADATA,
    "authOptions": "write `auth`; tokens are the default",
    "autoscalerOptions": (
        "write `autoscaler: {cpu, memory}`, and `idleTimeout` beside the bounds of `workers`"
    ),
    "enableInTreeAutoscaling": _BOUNDS,
    "gcsFaultToleranceOptions": "write `gcsFaultTolerance`",
    "headGroupSpec": "write `head`",
    "headService": _SERVICE,
    "headServiceAnnotations": _SERVICE,
    "historyServerOptions": _NO_SETTING,
    "managedBy": _HANDED_OVER,
    "networkPolicy": _NETWORK,
    "rayStartParams": _START,
    "serviceType": _SERVICE,
    "suspend": _SUSPEND,
    "tlsOptions": (
        "there is no setting for it; write RAY_USE_TLS and its paths under `env`, and mount the"
        " certificates by `podTemplate`"
    ),
    "upgradeStrategy": "an edit of the pods restarts the RayCluster; take it out",
    "workerGroupSpecs": "write `workerGroups`, by the group's name",
    "replicas": _WORKERS,
    "numWorkers": _WORKERS,
    "minWorkers": _BOUNDS,
    "maxWorkers": _BOUNDS,
    "minReplicas": _BOUNDS,
    "maxReplicas": _BOUNDS,
    "autoscaling": _BOUNDS,
    "pool": "write `worker.pool`",
    "gpu": "write `worker.gpus`",
    "cpu": "did you mean 'worker.cpu' or 'head.cpu'?",
    "memory": "did you mean 'worker.memory' or 'head.memory'?",
}
"""Hints for keys of a RayCluster."""

OF_HEADS: Mapping[str, str] = {
    "enableIngress": "a berth has no Ingress: whoever reaches the head runs code; take it out",
    "headService": _SERVICE,
    "ingressOptions": "a berth has no Ingress: whoever reaches the head runs code; take it out",
    "labels": "only workers have labels of Ray; write `worker.labels`",
    "rayStartParams": _START,
    "resources": _RESOURCES,
    "serviceType": _SERVICE,
    "template": _TEMPLATE,
}
"""Hints for keys of a head."""

OF_WORKERS: Mapping[str, str] = {
    "groupName": "the key under `workerGroups` is the group's name",
    "idleTimeoutSeconds": (
        "write `idleTimeout` beside the bounds: workers: {min: 0, max: 4, idleTimeout: 60s}"
    ),
    "maxReplicas": _BOUNDS,
    "minReplicas": _BOUNDS,
    "numOfHosts": "a worker has one pod; write a number of `workers`",
    "priority": "write `priority` of the berth",
    "rayStartParams": _START,
    "replicas": _WORKERS,
    "resources": _RESOURCES,
    "scaleStrategy": "KubeRay chooses the workers that go; take it out",
    "suspend": "write `workers: 0`",
    "template": _TEMPLATE,
}
"""Hints for keys of a group of workers."""

OF_AUTOSCALERS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "args",
            "command",
            "env",
            "envFrom",
            "image",
            "imagePullPolicy",
            "securityContext",
            "upscalingMode",
            "version",
            "volumeMounts",
        ),
        "berth sets it, or leaves KubeRay's default; take it out",
    ),
    "idleTimeoutSeconds": OF_WORKERS["idleTimeoutSeconds"],
    "resources": "write `cpu` and `memory`",
}
"""Hints for keys of Ray's autoscaler."""

OF_FAULT_TOLERANCE: Mapping[str, str] = {
    "backend": "the control store is kept in Redis; take it out",
    "externalStorageNamespace": "write `storageNamespace`",
    "redisAddress": "write `redis`",
    "redisPassword": "write `password: {secret: NAME, key: KEY}`",
    "redisUsername": "there is no setting for it: Redis's default user has the password",
    "storage": "the control store is kept in Redis; write `redis`",
}
"""Hints for keys of the fault tolerance of Ray's control store."""

OF_JOBS: Mapping[str, str] = {
    **OF_CLUSTERS,
    "activeDeadlineSeconds": "write `activeDeadline: 12h`",
    "clusterSelector": "write `cluster: NAME`",
    "deletionStrategy": "write `shutdownAfterJobFinishes` and `ttlAfterFinished`",
    "entrypointResources": "write `entrypointNumCpus` or `entrypointNumGpus`",
    "jobId": "KubeRay names the job; take it out",
    "preRunningDeadlineSeconds": "there is no setting for it; `wait.timeout` is an update's",
    "rayClusterSpec": "write its keys beside `entrypoint`, in berth's words",
    "runtimeEnvYAML": "write `runtimeEnv`, as a mapping",
    "suspend": "a job runs once it is in the settings; take it out",
    "submitterConfig": "berth sizes the submitter; take it out",
    "submitterPodTemplate": "berth sizes the submitter; take it out",
    "ttlSecondsAfterFinished": "write `ttlAfterFinished: 1h`",
}
"""Hints for keys of a RayJob."""

_OF_SERVICES = "KubeRay's default holds; take it out"

OF_SERVICES: Mapping[str, str] = {
    **{key: words for key, words in OF_CLUSTERS.items() if key != "upgradeStrategy"},
    "deploymentUnhealthySecondThreshold": _OF_SERVICES,
    "excludeHeadPodFromServeSvc": "write `head: {rayCpus: 0}` to keep replicas off the head",
    "rayClusterConfig": "write its keys beside `serveConfig`, in berth's words",
    "rayClusterDeletionDelaySeconds": _OF_SERVICES,
    "serveConfigV2": "write `serveConfig`, as a mapping",
    "serveService": "write `clients: [NAMESPACE]` for callers of Ray Serve",
    "serviceUnhealthySecondThreshold": _OF_SERVICES,
}
"""Hints for keys of a RayService."""
