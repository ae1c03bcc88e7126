"""The pure core: nouns, lifecycles, decisions, graphs, ports. Standard library only, no effects."""
