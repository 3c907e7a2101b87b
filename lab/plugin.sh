#!/bin/sh
# {what}
export {variable}={home}
export PYTHONPATH={clone}${{PYTHONPATH:+:$PYTHONPATH}}
# -P: the engine starts plugins in the program's folder, whose own folders must not be taken for berth's.
exec {python} -P -m {module} "$@"
