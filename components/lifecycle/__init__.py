"""The life of berths: when they are suspended and woken by themselves, and who does it.

`decision.py` and `keeper.py` are the keeper's program: they run in the environment's Ray image, with nothing but Python beside them and
components/programs/jobs.py. `manifest.py` makes what the keeper needs in the cluster.
"""
