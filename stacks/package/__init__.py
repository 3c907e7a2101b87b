"""berth as a Pulumi package, for programs in any of Pulumi's languages.

Belongs here: the package's schema and its components. Does not belong here: what the components
make (stacks/program).
"""
