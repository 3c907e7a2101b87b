#!/bin/bash
# Record the states that a checkout of berth makes, for tests/lab/test_states_that_exist.py.
#
#   tests/lab/states/record.sh CHECKOUT
#
# CHECKOUT is a clone of the recorded commit, with its .venv. Its lab has to use Pulumi's own kubernetes plugin: for
# commits before the lab built it, put the program into ~/.pulumi/plugins under the version of the SDK.
# It writes NAME.json.gz (`pulumi stack export`, secrets under the lab's public passphrase) and NAME.yaml (the stack's
# file) for the lab's own stack, for an engineer's own stack on it, and for each environment of the gallery, whose
# charts become those of the lab: an older lab serves no chart repository.
set -euo pipefail
checkout=$(realpath "$1") out=$(realpath "$(dirname "$0")")
home=$checkout/.lab
cd "$checkout"
export BERTH_LAB_KUBERNETES_PLUGIN=real
.venv/bin/berth lab up --no-update
eval "$(.venv/bin/berth lab env)"

record() {
    pulumi stack init "$1" --no-select 2> /dev/null || true
    pulumi up -s "$1" --yes --skip-preview --suppress-outputs
    pulumi stack export -s "$1" | gzip -n9 > "$out/$1.json.gz"
    cp "stacks/Pulumi.$1.yaml" "$out/$1.yaml"
}

with_the_labs_charts() { # of the operators that the environment installs: berth refuses settings of any other
    .venv/bin/python - "$1" << 'PYTHON'
import subprocess
import sys
from pathlib import Path

from ruamel.yaml import YAML

stack, yaml = sys.argv[1], YAML()
path = Path(f"stacks/Pulumi.{stack}.yaml")
charts = {"kuberay": "kuberay-operator", "gpu": "gpu-operator", "dranet": "dranet", "gpuDra": "dra-driver-nvidia-gpu"}
for name, chart in charts.items():
    before = path.read_text()
    document = yaml.load(before)
    operators = document["config"]["berth:environment"].setdefault("operators", {})
    operators.setdefault(name, {})["chart"] = f"./.lab/charts/{chart}"
    yaml.dump(document, path)
    if subprocess.run([".venv/bin/berth", "check", stack], capture_output=True).returncode:
        path.write_text(before)
PYTHON
}

if [ "${2:-}" != gallery ]; then
printf 'config:\n  berth:engineer:\n    environment: lab\n    workers: 2\n' > stacks/Pulumi.alice.yaml
record lab
record alice
pulumi destroy -s alice --yes --skip-preview
pulumi destroy -s lab --yes --skip-preview
fi
for file in stacks/gallery/Pulumi.*.yaml stacks/Pulumi.dev.yaml stacks/Pulumi.prod.yaml; do
    name=$(basename "$file" .yaml)
    name=${name#Pulumi.}
    [ "$file" = "stacks/Pulumi.$name.yaml" ] || cp "$file" stacks/
    with_the_labs_charts "$name"
    record "$name"
    pulumi destroy -s "$name" --yes --skip-preview > /dev/null || pulumi stack rm "$name" --force --yes
done
.venv/bin/berth lab down
echo "recorded in $out; $home is left"
