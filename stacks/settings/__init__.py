"""The whole configuration surface of berth, as pydantic models, without I/O of any kind."""
