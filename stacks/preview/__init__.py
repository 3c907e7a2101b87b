"""Report of a preview: a plan with effects, cost, policies and words; cli renders it."""
