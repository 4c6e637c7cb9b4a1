"""What checks import: what was seen of loaders, and how datasets, samples and workers are looked at."""
