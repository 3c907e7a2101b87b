"""The installed `pulumi` program, as several verbs need it.

Belongs here: questions to the program, runs of the engine with their events, and its errors in
berth's words. Does not belong here: what a plan means (stacks/preview), and what one verb alone
does.
"""
