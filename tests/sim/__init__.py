"""Deterministic simulation of many hosts that drive the protocol's core, judged by an independent naive model."""
