"""Pseudo-gradients as bytes and the outer step as exact arithmetic: the same bits on every machine.

Nothing here does I/O or imports torch. Arithmetic is float32, one operation one rounding, hosts in sorted order;
numbers that decide (norms, clip factors) are float64 in a stated order. Protocol: 3 (Apply) and 4 (blob, header).
"""
