"""Terminal and process of a command: output, help, signals, errors, programs."""
