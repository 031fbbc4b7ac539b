"""Who it is, and what they may do: certificates and tokens, roles and bindings, and the questions about both."""
