"""The kubernetes target: jobs as objects of a cluster, followed through its API by the official client."""
