"""Programs that run inside Ray's pods, by the image's own Python, and give podman there the pod's GPUs.

Belongs here: what is shipped to pods as text; it knows nothing of berth, and runs by Python 3.9 with nothing installed.
Does not belong here: what a pod must have for it (components/nested/pods.py).
"""
