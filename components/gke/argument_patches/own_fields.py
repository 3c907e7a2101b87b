"""Fields of clusters and node pools that are berth's, with what to write in their place.

A field stands here if some settings have berth send it, or if it is another way to say what a
setting says. Fields of a block that is listed are berth's too.
"""

from collections.abc import Mapping

_FOR_PODS = "take it out: pods get their Google identities, and none of the node's, by it"
_OF_THE_ACCOUNT = "take it out: the roles of the nodes' service account limit what nodes may do"
_BY_SIZE = "write `nodes` of the pool"
_CAPACITY = "write `capacity` of the pool"
_LOCAL_SSDS = "write `localSsds` of the pool"
_DISK_SIZE = "write `diskSizeGb` of the pool"
_DISK_TYPE = "write `diskType` of the pool"
_PLACE = "write `zone` or `region` of the environment"
_PROJECT = "write `project` of the environment"
_POOLS = "write `pools` of the environment"
_RANGES = "write `network` of the environment"
_LOGS = "write `cluster.logging`"
_METRICS = "write `cluster.managedPrometheus` or `cluster.managedDcgm`"
_NO_SETTING = "take it out"

POOL: Mapping[str, str] = {
    "name": "the pool's key in `pools` is its name",
    "namePrefix": "the pool's key in `pools` is its name",
    "cluster": "write `cluster.name` of the environment",
    "project": _PROJECT,
    "location": _PLACE,
    "nodeLocations": "write `zones` of the pool",
    "nodeCount": _BY_SIZE,
    "initialNodeCount": _BY_SIZE,
    "autoscaling": _BY_SIZE,
    "ignoreNodeCountChanges": "take it out: `nodes` of the pool would have no effect",
    "version": "write `cluster.version`, and GKE upgrades the nodes by the release channel",
    "maxPodsPerNode": "write `maxPodsPerNode` of the pool",
    "management.autoRepair": "write `autoRepair` of the pool",
    "management.autoUpgrade": (
        "take it out: a release channel upgrades nodes; `cluster.maintenance` says when"
    ),
    "upgradeSettings": "write `upgrade` of the pool",
    "placementPolicy.type": "write `compactPlacement` of the pool",
    "queuedProvisioning": "write `capacity: flex-start` of the pool",
    "networkConfig.enablePrivateNodes": "write `cluster.privateNodes`",
    "networkConfig.acceleratorNetworkProfile": "write `rdma: managed` of the pool",
    "networkConfig.additionalNodeNetworkConfigs": "write `rdma: networks` of the pool",
    "nodeConfig.machineType": "write `machineType` of the pool",
    "nodeConfig.imageType": "write `nodeImage` of the pool",
    "nodeConfig.diskSizeGb": _DISK_SIZE,
    "nodeConfig.diskType": _DISK_TYPE,
    "nodeConfig.bootDisk.sizeGb": _DISK_SIZE,
    "nodeConfig.bootDisk.diskType": _DISK_TYPE,
    "nodeConfig.labels": "write `labels` of the pool",
    "nodeConfig.resourceLabels": "write `labels` of the environment",
    "nodeConfig.taints": "write `taints` of the pool",
    "nodeConfig.guestAccelerators": "write `machineType`, `gpus` and `driver` of the pool",
    "nodeConfig.gvnic": "take it out: nodes of every pool have gVNIC",
    "nodeConfig.gcfsConfig": "write `imageStreaming` of the pool",
    "nodeConfig.secondaryBootDisks": "write `imageDisks` of the pool",
    "nodeConfig.workloadMetadataConfig": _FOR_PODS,
    "nodeConfig.shieldedInstanceConfig.enableSecureBoot": "write `secureBoot` of the pool",
    "nodeConfig.shieldedInstanceConfig.enableIntegrityMonitoring": _NO_SETTING,
    "nodeConfig.linuxNodeConfig.sysctls": "write `sysctls` of the pool",
    "nodeConfig.serviceAccount": "write `cluster.nodeServiceAccount`",
    "nodeConfig.oauthScopes": _OF_THE_ACCOUNT,
    "nodeConfig.hostMaintenancePolicy.maintenanceInterval": "write `hostMaintenance` of the pool",
    "nodeConfig.localSsdCount": _LOCAL_SSDS,
    "nodeConfig.ephemeralStorageConfig": _LOCAL_SSDS,
    "nodeConfig.ephemeralStorageLocalSsdConfig": _LOCAL_SSDS,
    "nodeConfig.localNvmeSsdBlockConfig": _LOCAL_SSDS,
    "nodeConfig.reservationAffinity": _CAPACITY,
    "nodeConfig.spot": _CAPACITY,
    "nodeConfig.preemptible": _CAPACITY,
    "nodeConfig.flexStart": _CAPACITY,
    "nodeConfig.maxRunDuration": _CAPACITY,
}
"""Fields of a node pool that are berth's, with the remedy."""

CLUSTER: Mapping[str, str] = {
    "name": "write `cluster.name`",
    "project": _PROJECT,
    "location": _PLACE,
    "nodeLocations": "write `zones` of the environment",
    "network": _RANGES,
    "subnetwork": _RANGES,
    "clusterIpv4Cidr": _RANGES,
    "ipAllocationPolicy.clusterSecondaryRangeName": _RANGES,
    "ipAllocationPolicy.servicesSecondaryRangeName": _RANGES,
    "ipAllocationPolicy.clusterIpv4CidrBlock": _RANGES,
    "ipAllocationPolicy.servicesIpv4CidrBlock": _RANGES,
    "networkingMode": "take it out: clusters are VPC-native",
    "datapathProvider": "take it out: Dataplane V2 enforces the berths' NetworkPolicies",
    "networkPolicy": "take it out: Dataplane V2 enforces the berths' NetworkPolicies",
    "addonsConfig.networkPolicyConfig": (
        "take it out: Dataplane V2 enforces the berths' NetworkPolicies"
    ),
    "enableMultiNetworking": "write `cluster.multiNetworking`",
    "releaseChannel": "write `cluster.releaseChannel`",
    "minMasterVersion": "write `cluster.version`",
    "nodeVersion": "write `cluster.version`, and GKE upgrades the nodes by the release channel",
    "maintenancePolicy.dailyMaintenanceWindow": "write `cluster.maintenance.start`",
    "maintenancePolicy.maintenanceExclusions": "write `cluster.maintenance.exclusions`",
    "workloadIdentityConfig": _FOR_PODS,
    "removeDefaultNodePool": _POOLS,
    "initialNodeCount": _POOLS,
    "nodePools": _POOLS,
    "enableAutopilot": "take it out: berth creates the node pools, which Autopilot has none of",
    "ignoreNodeCountChanges": _POOLS,
    "nodePoolAutoConfig.networkTags": (
        "write `nodeConfig.tags` under `arguments` of each pool: these are for pools that GKE"
        " creates itself"
    ),
    "enableLegacyAbac": "take it out: it gives pods rights in all namespaces",
    "nodeConfig.oauthScopes": _OF_THE_ACCOUNT,
    "nodeConfig.shieldedInstanceConfig": "take it out: the first pool lives for a minute",
    "nodeConfig.workloadMetadataConfig": "take it out: the first pool lives for a minute",
    "nodeConfig.serviceAccount": "write `cluster.nodeServiceAccount`",
    "privateClusterConfig.enablePrivateNodes": "write `cluster.privateNodes`",
    "privateClusterConfig.enablePrivateEndpoint": "write `cluster.privateEndpoint`",
    "controlPlaneEndpointsConfig.dnsEndpointConfig.allowExternalTraffic": (
        "write `cluster.dnsEndpoint`"
    ),
    "controlPlaneEndpointsConfig.ipEndpointsConfig.enabled": "write `cluster.ipEndpoint`",
    "masterAuthorizedNetworksConfig.cidrBlocks": "write `cluster.authorizedNetworks`",
    "addonsConfig.rayOperatorConfigs": "write `operators.kuberay.source` of the environment",
    "addonsConfig.gcsFuseCsiDriverConfig": "write `cluster.gcsFuse`",
    "addonsConfig.gcpFilestoreCsiDriverConfig": "write `cluster.filestore`",
    "secretSyncConfig": "write `cluster.secretSync`",
    "enableShieldedNodes": _NO_SETTING,
    "loggingConfig.enableComponents": _LOGS,
    "loggingService": _LOGS,
    "monitoringConfig.enableComponents": _METRICS,
    "monitoringConfig.managedPrometheus.enabled": _METRICS,
    "monitoringService": _METRICS,
    "resourceLabels": "write `labels` of the environment",
    "deletionProtection": "write `cluster.deletionProtection`",
    "costManagementConfig": "write `cluster.costAllocation`",
    "authenticatorGroupsConfig": "write `cluster.securityGroup`",
    "databaseEncryption": "write `cluster.secretsEncryptionKey`",
}
"""Fields of a cluster that are berth's, with the remedy."""
