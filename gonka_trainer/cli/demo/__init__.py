"""The demo: a devnet, three hosts, one model, six rounds."""
