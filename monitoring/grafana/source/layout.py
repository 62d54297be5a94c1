"""Makes a dashboard from rows of panels: places, numbers, variables, links; and writes it as JSON."""
import json

from panels import DATASOURCE
from queries import spelled_out

COLUMNS = 24


def row(title, *entries):
    return title, entries


def placed(rows):
    """Places panels from left to right, in lines of 24 columns. Each row has its title above it."""
    panels, y = [], 0
    for title, entries in rows:
        panels.append({"id": len(panels) + 1, "type": "row", "title": title, "collapsed": False,
                       "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y}, "panels": []})
        y, x, tallest = y + 1, 0, 0
        for w, h, panel in entries:
            if x + w > COLUMNS:
                y, x, tallest = y + tallest, 0, 0
            panels.append({"id": len(panels) + 1, "gridPos": {"h": h, "w": w, "x": x, "y": y}, **panel})
            x, tallest = x + w, max(tallest, h)
        y += tallest
    return panels


def variable(name, query, several=False):
    """A dashboard variable: one of a label's values; with `several` any number of them, or all."""
    query = spelled_out(query)
    chosen = {"text": ["All"], "value": ["$__all"]} if several else {}
    return {"name": name, "type": "query", "datasource": DATASOURCE, "definition": query,
            "query": {"query": query, "refId": name}, "refresh": 2, "sort": 7, "multi": several, "includeAll": several,
            **({"allValue": ".*"} if several else {}), "current": chosen, "options": []}


def dashboard(uid, title, description, tasks, rows):
    """tasks: the query of the variable `task`."""
    variables = [{"name": "datasource", "label": "data source", "type": "datasource", "query": "prometheus",
                  "current": {}, "options": []},
                 variable("cluster", "label_values(disttrain_build_info, cluster)"),
                 variable("job", "label_values(disttrain_job_state{CLUSTER}, job)"),
                 variable("task", tasks, several=True)]
    # A menu with all dashboards of this tag. The dashboard that the user opens keeps the chosen variables.
    links = [{"type": "dashboards", "title": "disttrain", "tags": ["disttrain"], "asDropdown": False,
              "includeVars": True, "keepTime": True}]
    return {"uid": uid, "title": title, "description": description, "tags": ["disttrain"], "schemaVersion": 38,
            "version": 1, "editable": True, "graphTooltip": 1, "refresh": "30s",
            "time": {"from": "now-1h", "to": "now"}, "annotations": {"list": []}, "links": links,
            "templating": {"list": variables}, "panels": placed(rows)}


def written(value, indent=0, before=0):
    """JSON that keeps an object or list on one line if it fits into 120 columns, so that diffs read well."""
    line = json.dumps(value, ensure_ascii=False)
    if indent + before + len(line) <= 120 or not value or not isinstance(value, (dict, list)):
        return line
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {written(part, indent + 2, len(key) + 4)}" for key, part in value.items()]
    else:
        parts = [written(part, indent + 2) for part in value]
    brackets = "{}" if isinstance(value, dict) else "[]"
    return brackets[0] + "\n" + ",\n".join(inner + part for part in parts) + "\n" + " " * indent + brackets[1]
