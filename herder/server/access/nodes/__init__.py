"""Nodes as users: what the agent of a node may see (`authorizer`), and what it may write (`restriction`). Both as in Kubernetes."""
