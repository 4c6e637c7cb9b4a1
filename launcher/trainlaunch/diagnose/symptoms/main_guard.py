from __future__ import annotations

from trainlaunch.diagnose.base.case import of_one_text
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL651"
NAME = "main-guard"
_BOOT = LogPattern("rror:", r"An attempt has been made to start a new process before")
_BARE = LogPattern("new process before the", r"An attempt has been made to start a new process before")

diagnose = of_one_text(
    CODE,
    NAME,
    (_BARE,),
    "the script has no main guard, so each worker started the whole script again",
    'put the script\'s own calls below `if __name__ == "__main__":`; with multiprocessing_context fork none is needed',
)
