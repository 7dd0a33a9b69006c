"""`python -m tests.sim --seed 7` or `--seeds 0-999`: play worlds, print what is wrong and what was reached."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from .play import play


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", help="A-B, both included")
    parser.add_argument("--first", action="store_true", help="stop at the first failing seed")
    parser.add_argument("--coverage", action="store_true")
    chosen = parser.parse_args()
    first, last = (chosen.seed, chosen.seed) if chosen.seed is not None else map(int, chosen.seeds.split("-"))
    total: Counter[str] = Counter()
    failed, began = [], time.monotonic()
    for seed in range(first, last + 1):
        result = play(seed)
        total += result.counts
        if result.wrong:
            failed.append(seed)
            print(result.text, flush=True)
            if chosen.first:
                break
    if chosen.coverage or chosen.seed is not None:
        for what, times in sorted(total.items()):
            print(f"{times:8d}  {what}")
    print(f"{last - first + 1} seeds, {len(failed)} failed {failed[:20]}, {time.monotonic() - began:.1f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
