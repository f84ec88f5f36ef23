"""What every random case is drawn with: numbers of any source, and what is made of them."""

WIDEST = 2**62  # the range of numbers that every source can draw from


class Choices:
    """Draw numbers and options from `integer(low, high)`, which includes both ends.

    The source is the method of a `random.Random`, of a fuzzer's provider of bytes, or hypothesis.
    The first option of a list is the plainest: hypothesis shrinks towards it.
    """

    def __init__(self, integer):
        self._integer = integer

    def integer(self, low, high):
        if high - low < WIDEST:
            return self._integer(low, high)
        above = self.integer(0, (high - low) // WIDEST)
        return min(high, low + above * WIDEST + self._integer(0, WIDEST - 1))

    def pick(self, options):
        return options[self.integer(0, len(options) - 1)]

    def once_in(self, times):
        return self.integer(0, times - 1) == times - 1
