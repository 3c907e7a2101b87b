"""berth as a Pulumi package, for programs in any of Pulumi's languages."""
