"""The installed `pulumi` program, as several verbs need it."""
