"""Update of one stack, by the engine and by what the cluster says."""
