"""A command in one string, split into words as Compose does it: quotes and escapes, and no shell."""

from __future__ import annotations

from trainlaunch.formats.compose.layers import is_null
from trainlaunch.formats.compose.values import known, read_string, unknown
from trainlaunch.formats.workload import Known, Value
from trainlaunch.yamltree.documents import Node, Scalar, Sequence

_ENDS = frozenset(";&|<>")


def read_argv(node: Node | None) -> Value[tuple[str, ...]]:
    """Return the words of a command or entrypoint; Unknown where a variable decides one, or Compose refuses it."""
    if node is None or is_null(node):
        return None
    if isinstance(node, Scalar):
        text = read_string(node)
        words = split_words(text.value) if isinstance(text, Known) else None
    else:
        items = [read_string(each) for each in node.items] if isinstance(node, Sequence) else [None]
        words = tuple(each.value for each in items if isinstance(each, Known))
        words = words if len(words) == len(items) else None
    return unknown(node) if words is None else known(words, node)


def split_words(text: str) -> tuple[str, ...] | None:
    """Return the words of `text`, None where Compose refuses it.

    What stands behind a bare `;`, `&`, `|`, `<` or `>` is dropped, as Compose drops it without a word.
    """
    splitter = _Splitter()
    for character in text:
        if splitter.ended:
            break
        splitter.take(character)
    return splitter.words()


class _Splitter:
    """State of go-shellwords, which Compose splits with, its variables and backticks off."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._word = ""
        self._has_word = False
        self._escaped = False
        self._open: set[str] = set()  # ' " ` and ( of $(; each knows the others only as `_toggles` says
        self._refused = False
        self.ended = False

    def take(self, character: str) -> None:
        """Read one character."""
        if self._escaped:
            self._add(character)
            self._escaped = False
        elif character == "\\" and "'" not in self._open:
            self._escaped = True
        elif character in " \t\r\n" and not self._open:
            self._finish()
        elif character in _ENDS and not self._open:
            if character == ">" and self._word[:1] in set("0123456789"):
                self._word, self._has_word = "", False  # 2>: the number is the redirection's
            self.ended = True
        elif not self._toggles(character):
            self._add(character)

    def _toggles(self, character: str) -> bool:
        """Open or close what a quote or parenthesis opens and closes; False where it is a character as any other."""
        hidden_by = {"'": '"(', '"': "'(", "`": "'\"(", "(": "'\"`", ")": "'\"`"}.get(character)
        if hidden_by is None or self._open & set(hidden_by):
            return False
        if character == "(":
            self._refused = self._refused or "(" in self._open or self._word[-1:] != "$"
        if character in "'\"":
            self._has_word = True
        else:
            self._add(character)
        self._open ^= {character.replace(")", "(")}  # a lone one opens as $( does
        return True

    def _add(self, character: str) -> None:
        self._word += character
        self._has_word = True

    def _finish(self) -> None:
        if self._has_word:
            self._words.append(self._word)
        self._word, self._has_word = "", False

    def words(self) -> tuple[str, ...] | None:
        """Return the words; None where a quote is open, an escape has nothing to escape, or a parenthesis stands."""
        if self._refused or self._escaped or self._open:
            return None
        self._finish()
        return tuple(self._words)
