"""Lab: a real control plane, engine and operator on this machine; simulated hardware and cloud.

Belongs here: building the lab's tools, starting and stopping its processes, and everything that is
    simulated.
Does not belong here: anything that a real environment needs. `stacks/` and `components/` never
    import this package.

`sources.md` beside this file says what each module answers to: a real program, a recording, a page.
"""
