"""A sample is None, and the collate function can't take that."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation
from launcher.measure.finding import Finding
from launcher.measure.samples import sample

TL705 = Explanation(
    "TL705",
    "none-sample",
    "A sample is None, or has a part that is, and the loader's collate_fn can't put that into a batch.",
    """\
**Why**: a `__getitem__` without a `return` in one of its branches gives None. default_collate puts tensors, arrays,
numbers and text together and stops the job at None: `default_collate: batch must contain tensors, numpy arrays,
numbers, dicts or lists; found <class 'NoneType'>`. A collate_fn that leaves such samples out is fine, and is not meant.

**Example**:

```python
class Images(Dataset):
    def __getitem__(self, index):
        image = read(self.paths[index])
        if image is not None:
            return scaled(image)
```

**Write instead**:

```python
def kept(samples):
    return default_collate([each for each in samples if each is not None])


loader = DataLoader(dataset, batch_size=32, collate_fn=kept)
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `index`, `file`, the `path` of what is None in the sample, `found` of `tried`."""
    facts = finding.facts
    path, found, tried = str(facts["path"]), int(facts["found"]), int(facts["tried"])
    whole = "is None" if path == "sample" else f"has None at {path}"
    more = f", as {'has' if found == 2 else 'have'} {found - 1} more of {tried} that were read" if found > 1 else ""
    return Diagnostic(
        TL705.code,
        f"{sample(finding)} {whole}{more}, and the loader's collate_fn can't take None",
        "return a whole sample in every branch of __getitem__, or give the loader a collate_fn that leaves None out",
        why="default_collate takes tensors, arrays, numbers and text, and stops the job at anything else",
    )
