"""Stand-in for Pulumi's `kubernetes` provider plugin, for machines that cannot have the real one.

The stand-in serves what berth's programs register: Kubernetes objects by server-side apply (checked
by the server's dry run in previews, drift found on refresh) and `helm.sh/v3:Release` through the
`helm` program. Plans, states and errors have the shape of provider 4.x;
tests/lab/test_kubernetes_plugin.py compares them with recordings of the real plugin, so that a
state of one is usable with the other. Anything else, such as Patch resources, `pulumi.com/waitFor`
or an import, is refused.

The lab puts `pulumi-resource-kubernetes` where only its own engine looks. Elsewhere Pulumi installs
the real plugin.

Answers to (recorded): shared/upstream/kubernetes-plugin (the real plugin 4.29.0), compared by
    tests/lab/test_kubernetes_plugin.py
"""
