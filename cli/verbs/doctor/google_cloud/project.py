"""Checks of the project itself: it exists and is active."""

from berth.cli.reach.google_cloud import GoogleClient, GoogleError
from berth.cli.verbs.doctor.findings import DoctorFinding, Topic

PROJECT = Topic("project")


def check_project(google: GoogleClient) -> DoctorFinding:
    """Check that the project exists and is active.

    Raises:
        GoogleError: Google Cloud cannot be asked, or refuses; see `no_project`.
    """
    project = google.project
    answer = google.get("cloudresourcemanager", f"projects/{project}")
    state = answer.get("lifecycleState", "ACTIVE")
    if state == "DELETE_REQUESTED":
        return PROJECT.missing(
            f"project {project} is DELETE_REQUESTED", f"gcloud projects undelete {project}"
        )
    if state != "ACTIVE":
        return PROJECT.missing(f"project {project} is {state}", "")
    number = f" ({answer['projectNumber']})" if answer.get("projectNumber") else ""
    return PROJECT.fine(f"project {project} exists{number}")


def no_project(project: str, error: GoogleError) -> DoctorFinding:
    """Return why a project cannot be checked; Google answers 403 also for one that is missing."""
    if error.kind in ("absent", "forbidden") and not error.remedy:
        return PROJECT.missing(
            f"there is no project {project}, or you may not see it",
            f"gcloud projects create {project}   # or ask for access",
        )
    return PROJECT.missing(error.problem, error.remedy)
