"""Wires everything: the one place that sees every layer, for command line, tests and simulator."""
