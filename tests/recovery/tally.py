"""tally.py: how changes were answered, by what they were about, and why some of them were refused."""
import collections


class Tally:
    """What a change is about is a word: a space, or a kind of id."""

    def __init__(self):
        self.answered = collections.Counter()  # about -> changes
        self.refused = collections.Counter()  # (about, reason) -> of these

    def note(self, about, done, reason, may):
        """One more. False: it was refused, and not for one of the reasons of `may`."""
        self.answered[about] += 1
        if not done:
            self.refused[about, reason] += 1
        return done or reason in may

    def excess(self, most):
        """What was refused more often than most[about][reason] allows, a share of the changes, in words; or None."""
        for (about, reason), count in self.refused.items():
            if count > most[about][reason] * self.answered[about]:
                return self.words(about, reason)
        return None

    def words(self, about, reason):
        return "%d of %d %s %s" % (self.refused[about, reason], self.answered[about], about, reason.decode())

    def __str__(self):
        return "refused:%s" % ("".join(" %s;" % self.words(*key) for key in sorted(self.refused)) or " none")
