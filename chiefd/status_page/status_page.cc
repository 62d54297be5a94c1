// The page draws its curves as SVG without a library. Pushing values to the page (server-sent events) would use one
// connection per reader, and the endpoint serves only four connections at a time. The page inserts all texts from the
// cluster as text, never as HTML.
#include "chiefd/status_page/status_page.h"

#include <algorithm>
#include <utility>

#include "chiefd/status_json.h"
#include "common/daemon/startup.h"

namespace disttrain::chiefd {
namespace {

using nlohmann::json;

constexpr std::size_t kEventsShown = 100;

}  // namespace

json page_state(const std::string& cluster, json job, const Curves& curves, const std::deque<EventRecord>& events) {
  // `curves` may still belong to the previous job, for example if the shown job has just begun.
  const bool is_its = curves.job() && job.contains("id") && job["id"] == curves.job()->value;
  json curve = json::array();
  for (const CurvePoint& point : is_its ? curves.points() : std::vector<CurvePoint>())
    curve.push_back({{"step", point.step},
                     {"loss", number_or_null(point.loss)},
                     {"learning_rate", number_or_null(point.learning_rate)},
                     {"steps_per_second", number_or_null(point.steps_per_second)}});
  json evaluations = json::array();
  for (const EvaluationStatus& evaluation : is_its ? curves.evaluations() : std::vector<EvaluationStatus>())
    evaluations.push_back({{"step", evaluation.step.value}, {"loss", number_or_null(evaluation.loss)}});
  const std::size_t shown = std::min(events.size(), kEventsShown);
  return {
      {"cluster", cluster},
      {"version", daemon::kVersion},
      {"job", std::move(job)},
      {"curve", curve},
      {"evaluations", evaluations},
      {"events", to_json(std::vector<EventRecord>(events.end() - static_cast<std::ptrdiff_t>(shown), events.end()))}};
}

void add_status_page(daemon::HttpEndpoint& http, std::function<std::string()> state) {
  http.add("/", [] { return daemon::HttpAnswer{200, "text/html; charset=utf-8", kStatusPage}; });
  http.add("/status.json", [&http, state = std::move(state)] {
    std::optional<std::string> text = http.ask(state);
    if (!text)
      return daemon::HttpAnswer{503, daemon::HttpAnswer().content_type, "the chief's loop didn't answer in time\n"};
    return daemon::HttpAnswer{200, "application/json", std::move(*text)};
  });
}

}  // namespace disttrain::chiefd
