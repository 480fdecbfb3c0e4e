"""How long does `import busbound` take? The median Python startup time with it, minus the median without.

python crates/python/measure_import.py [STARTS]     run it with a Python that has the wheel installed
"""

import statistics
import subprocess
import sys
import time


def start(code):
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - began) * 1e3


def main():
    starts = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    bare, importing = [], []
    for _ in range(starts):
        # Alternating, so that both see the same machine load.
        bare.append(start("pass"))
        importing.append(start("import busbound"))
    without, with_it = statistics.median(bare), statistics.median(importing)
    print(f"{starts} starts each: python {without:.1f} ms, with import busbound {with_it:.1f} ms, difference {with_it - without:.1f} ms")


main()
