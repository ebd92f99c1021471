"""End with exit code 1 if the hit of the second file of figures is lower than the hit of the first one."""

import json
import sys
from pathlib import Path

earlier, now = (json.loads(Path(name).read_text("utf-8"))["metrics"]["hit"] for name in sys.argv[1:3])
print(f"hit: {earlier:.3f} before, {now:.3f} now")
sys.exit(int(now < earlier))
