"""The preview's report: a plan with its effects, cost, policies and words. Pure; cli/preview renders it."""
