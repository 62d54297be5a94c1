"""Short words for the parts that many queries share."""
import re

CLUSTER = 'cluster="$cluster"'
WORDS = {
    "CLUSTER": CLUSTER,
    "CLUSTER_TASKS": CLUSTER + ', task=~"$task"',
    "JOB": CLUSTER + ', job="$job"',
    "TASKS": CLUSTER + ', job="$job", task=~"$task"',
    "RATE": "$__rate_interval",  # at least four scrape intervals; over a shorter time, a rate would have gaps
    "RANGE": "$__range",
}


def spelled_out(query):
    """Replaces the words of a query: disttrain_loss{JOB} becomes disttrain_loss{cluster="$cluster", job="$job"}."""
    return re.sub(r"\b(" + "|".join(WORDS) + r")\b", lambda word: WORDS[word[0]], query)


def shares(metric, selector, by):
    """Seconds by a label, as shares of all seconds, 0 to 1."""
    return (f"sum by ({by}) (rate({metric}{{{selector}}}[RATE]))"
            f" / ignoring ({by}) group_left () sum (rate({metric}{{{selector}}}[RATE]))")
