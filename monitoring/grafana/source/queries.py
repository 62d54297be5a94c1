"""Short words in queries, so that a panel's source says only what is its own."""
import re

CLUSTER = 'cluster="$cluster"'
WORDS = {
    "CLUSTER": CLUSTER,
    "CLUSTER_TASKS": CLUSTER + ', task=~"$task"',
    "JOB": CLUSTER + ', job="$job"',
    "TASKS": CLUSTER + ', job="$job", task=~"$task"',
    "RATE": "$__rate_interval",  # at least four scrapes: a rate over less has holes
    "RANGE": "$__range",
}


def spelled_out(query):
    """The query with its words replaced: disttrain_loss{JOB} is disttrain_loss{cluster="$cluster", job="$job"}."""
    return re.sub(r"\b(" + "|".join(WORDS) + r")\b", lambda word: WORDS[word[0]], query)


def shares(metric, selector, by):
    """Seconds spent as parts of all seconds, 0 to 1, by a label."""
    return (f"sum by ({by}) (rate({metric}{{{selector}}}[RATE]))"
            f" / ignoring ({by}) group_left () sum (rate({metric}{{{selector}}}[RATE]))")
