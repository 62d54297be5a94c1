// A read-only web page, on the chief's HTTP address, that shows the current state of the cluster. The page is one file
// (page.html). It loads nothing from other hosts, and fetches status.json each second.
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

// The content of status.json: the job's status as docs/json.md describes it, the job's curve and evaluations, and the
// newest events of all jobs. Only the page reads status.json, so its form may change whenever the page does.
nlohmann::json page_state(const std::string& cluster, nlohmann::json job, const Curves& curves,
                          const std::deque<EventRecord>& events);

// Adds the pages "/" and "/status.json" to `http`. Call this before serve(). The chief's loop calls `state`, which
// returns the text of status.json.
void add_status_page(daemon::HttpEndpoint& http, std::function<std::string()> state);

}  // namespace disttrain::chiefd
