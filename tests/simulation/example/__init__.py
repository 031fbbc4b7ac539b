"""A small controller in the shape that all of ours have: a kind, its children and a status. It herds sheep."""
