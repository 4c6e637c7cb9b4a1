"""How findings name one sample."""

from __future__ import annotations

from trainlaunch.measure.finding import ProbeFinding


def sample(finding: ProbeFinding) -> str:
    """Return a sample's name by the facts `index` and `file`: `sample 17 (cats/17.jpg)`."""
    file = finding.facts["file"]
    return f"sample {finding.facts['index']}" + (f" ({file})" if file else "")
