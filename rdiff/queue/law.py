"""What every law of a queue says of itself."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rdiff.queue.chain import JSQQueue


class QueueLaw:
    """A law of X that belongs to a `JSQQueue`: `queue` is set by the law itself."""

    queue: "JSQQueue"

    @property
    def n(self) -> int:
        """The number of servers."""
        return self.queue.n

    @property
    def b(self) -> int:
        """Places to wait at each server."""
        return self.queue.b

    @property
    def beta(self) -> float:
        """n^alpha (1 - lam)."""
        return self.queue.beta

    @property
    def lam(self) -> float:
        """Arrival rate a server."""
        return self.queue.lam

    @property
    def alpha(self) -> float:
        """The regime: lam = 1 - beta/n^alpha."""
        return self.queue.alpha
