"""The positions of numbers in the `counts` of a search."""

#: Entries looked at, whether to stop, whether a buffer is full, combinations kept, the last stamp, whether
#: `max_bindings` left something out, facts and bindings collected, the match that is completed, -1 while searching,
#: whether the matches are completed, how many were found, whether that search was stopped, the start of the match's
#: bindings.
SCANS, STOPPED, FULL, FOUND, STAMP, LEFT_OUT, FACTS, BINDINGS, MATCH, COMPLETED, TOTAL, CUT, FIRST_BINDING = range(13)

#: The values that the caller sets: budgets for finding the matches and for completing each, the edges of the pattern, a
#: cost below which the k best are the best of all, how many are given, the size of the buffers, and the number of these
#: values.
MAX_SCANS, SCANS_OF_EACH, MAX_BINDINGS, EDGES, CERTAIN_BELOW, GIVEN, CAPACITY, COUNTS = range(13, 21)
