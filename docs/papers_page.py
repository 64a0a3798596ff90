"""Put the tables that `armid reproduce all --seeds N -o FOLDER` wrote into docs/papers.md: papers_page.py FOLDER."""

import re
import sys
from pathlib import Path

page = Path(__file__).with_name("papers.md")
made = (Path(sys.argv[1]) / "seeds.md").read_text(encoding="utf-8")
text = page.read_text(encoding="utf-8")
between = re.compile(r"(<!-- seeds -->\n).*?(<!-- end of seeds -->)", re.S)
page.write_text(between.sub(lambda found: f"{found[1]}\n{made}\n{found[2]}", text), encoding="utf-8")
