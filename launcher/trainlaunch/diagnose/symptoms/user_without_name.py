from __future__ import annotations

from trainlaunch.diagnose.base.case import of_one_text
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL667"
NAME = "user-without-name"
_UID = LogPattern("ot found: ", r"getpwuid\(\): uid not found: \d+|no entry for uid \d+")
_NAME = LogPattern("rror: No username set in the environment")

diagnose = of_one_text(
    CODE,
    NAME,
    (_UID, _NAME),
    "the user that the container runs as has no name in the image",
    "set env: {USER: user, LOGNAME: user, HOME: /tmp, TORCHINDUCTOR_CACHE_DIR: /tmp/inductor}",
)
