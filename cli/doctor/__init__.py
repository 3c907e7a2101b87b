"""`berth doctor`: checks of everything that an update needs, without changing anything.

Belongs here: questions to Google Cloud, Pulumi and the cluster, and what to do about the answers.
"""
