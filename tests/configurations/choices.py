"""The source of random numbers that every case is drawn from."""

WIDEST = 2**62  # the range of numbers that every source can draw from


class Choices:
    """Draw numbers and options from a function `integer(low, high)` that includes both ends.

    The function is `random.Random.randint`, a fuzzer's `ConsumeIntInRange`, or a draw of
    hypothesis. In a list of options put the simplest first, because hypothesis shrinks towards it.
    """

    def __init__(self, integer):
        self._integer = integer

    def integer(self, low, high):
        if high - low < WIDEST:
            return self._integer(low, high)
        above = self.integer(0, (high - low) // WIDEST)
        return min(high, low + above * WIDEST + self._integer(0, WIDEST - 1))

    def pick(self, options):
        """Return one of the options. List an option twice to make it twice as likely."""
        return options[self.integer(0, len(options) - 1)]

    def once_in(self, times):
        """Return True in one of `times` draws. Shrinking leads to False."""
        return self.integer(0, times - 1) == times - 1
