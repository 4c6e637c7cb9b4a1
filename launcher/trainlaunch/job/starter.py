"""What a call that starts a job's training processes is."""

from __future__ import annotations

from typing import NamedTuple

PER_GPU = "gpus"  # as many as the container has GPUs
AS_PLANNED = "ranks"  # the token {nproc_per_node}, which becomes the planned number
Count = int | str | None


class Starter(NamedTuple):
    """A call that starts ranks: its name in a sentence, the field that it stands in, and how many it starts.

    `count` is a number, PER_GPU, AS_PLANNED, or None where the text doesn't tell. `option` is what sets the number
    there, `` where nothing does; `usual` is the option to set it with. `torch`: it is torchrun, as the block is.
    `in_text`: it stands in a shell's text, where no token is replaced.
    """

    name: str
    field: str
    count: Count  # type: ignore[assignment]  # a tuple's own count is of no use here
    option: str
    usual: str
    torch: bool = False
    in_text: bool = False

    @property
    def words(self) -> str:
        """The call as a sentence names it: `torchrun --nproc_per_node 8`."""
        number = f" {self.count}" if isinstance(self.count, int) else ""
        return f"{self.name} {self.option}{number}" if self.option else self.name

    def typed(self, count: int) -> str:
        """Return the option to type for `count` ranks: with the token, or the number where nothing replaces a token."""
        return f"{self.usual} {count}" if self.in_text else f'{self.usual} "{{nproc_per_node}}"'
