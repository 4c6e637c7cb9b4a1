"""A fake cluster, what a user does on it, and what any cluster must do.

The asserts outside of test modules print what differed too: nobody sees a real cluster's failure twice.
"""

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{each}" for each in ("asking", "contract", "real", "role")))
