"""The host's main loop: blocks in, commands out, reports on the side."""
