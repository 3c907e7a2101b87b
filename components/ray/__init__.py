"""RayClusters: their manifests (pure), the component, and what can be told of a running one."""
