"""What runs guests on a node: real QEMU machines, or a model of them. `base` says what an agent may ask of either."""
