// A page for people: the cluster as it is now, on the chief's own HTTP address. Read-only, one file without anything
// from elsewhere (page.html), which asks for status.json each second.
#pragma once

#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "chiefd/core/journal_state.h"
#include "chiefd/curves/curves.h"
#include "common/daemon/http/endpoint.h"

namespace disttrain::chiefd {

extern const char kStatusPage[];

// What the page shows: the job's status as docs/json.md has it (before the first job the same keys), its curve, its
// evaluations, and the newest events of all jobs. For the page alone: it may change with it.
nlohmann::json page_state(const std::string& cluster, nlohmann::json job, const Curves& curves,
                          const std::deque<EventRecord>& events);

// "/" and "/status.json". Before serve(); `state`, asked on the loop, gives the text of status.json.
void add_status_page(daemon::HttpEndpoint& http, std::function<std::string()> state);

}  // namespace disttrain::chiefd
