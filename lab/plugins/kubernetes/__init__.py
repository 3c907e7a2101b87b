"""A stand-in for Pulumi's `kubernetes` provider plugin, for machines where the real one cannot be had.

It serves what berth and its lab use: Kubernetes objects of any kind by server-side apply (checked by the server's dry
run in previews, drift found on refresh, import, Patch resources, the `pulumi.com/waitFor`, `skipAwait` and
`timeoutSeconds` annotations) and `helm.sh/v3:Release` through the `helm` program. Plans, states and errors are shaped
as those of provider 4.x with `enableServerSideApply`; tests/lab/test_kubernetes_plugin.py holds it to recordings of the
real one, so that a state written with one is usable with the other.

It is found only where the lab puts `pulumi-resource-kubernetes` on PATH. Anywhere else Pulumi installs and starts the
real plugin, and nothing of this package is imported.

Not in it: client-side apply, `renderYamlToDirectory`, YAML and Kustomize components, `helm.sh/v4`, functions of the
provider, schemas (so `pulumi import` is run with `--generate-code=false`), deprecation warnings, OpenAPI checks before the dry run. What is waited for is simpler (see
`readiness`), and a refresh does not ask whether an object is still ready.

Answers to (recorded): shared/upstream/kubernetes-plugin (the real plugin 4.29.0), compared by
    tests/lab/test_kubernetes_plugin.py
"""
