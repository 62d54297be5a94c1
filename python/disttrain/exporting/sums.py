"""Tells a loss that is a sum over the batch from a mean, by its values for some records, and for them twice and thrice."""


def is_sum(losses):
    """The losses of the same records once, twice and three times. That of a sum grows by equal parts; that of a
    contrastive loss, for example, grows less and less."""
    first, second = losses[1] - losses[0], losses[2] - losses[1]
    return first != 0 and abs(first) >= 0.25 * abs(losses[0]) and abs(second - first) <= 0.05 * abs(first)
