"""Update or destruction of a stack: the question, the runs of the engine, progress and summary."""
