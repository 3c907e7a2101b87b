"""The fabric as Kubernetes sees it: classes and claims of NICs and GPUs, and NCCL's settings. All of it pure but resource_api.py."""
