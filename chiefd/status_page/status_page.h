// A page for people that shows the cluster as it is now, on the chief's HTTP address. It is read-only, and one file
// (page.html) that loads nothing from elsewhere and asks for status.json each second.
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

// What the page shows: the job's status as in docs/json.md (before the first job with the same keys), its curve, its
// evaluations, and the newest events of all jobs. Only the page reads it, so its form may change with the page.
nlohmann::json page_state(const std::string& cluster, nlohmann::json job, const Curves& curves,
                          const std::deque<EventRecord>& events);

// Adds "/" and "/status.json". Call it before serve(). `state` is called on the loop and returns the text of
// status.json.
void add_status_page(daemon::HttpEndpoint& http, std::function<std::string()> state);

}  // namespace disttrain::chiefd
