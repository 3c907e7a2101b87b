"""Proofs in a live cluster: a GPU adds on every pool, and an all-reduce crosses the fabric.

Belongs here: the run, its evidence, verdicts and likely causes. Does not belong here: which pool or
    RayCluster to prove (cli/).
"""

from berth.components.proof.checks import RUN_LABEL, Check, Verdict
from berth.components.proof.cuda_vector_add import NAMESPACE
from berth.components.proof.fabric.claims import Expected
from berth.components.proof.fabric.report import report_page
from berth.components.proof.fabric.run import FabricResult, FabricRun
from berth.components.proof.fabric.threshold import Threshold, threshold_of
from berth.components.proof.gpu_run import GpuRun, IsolationRun, PoolProof
from berth.components.proof.proof_run import Run
