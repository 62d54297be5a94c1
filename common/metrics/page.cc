#include "common/metrics/page.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <map>
#include <utility>

#include "common/metrics/families.h"

namespace disttrain::metrics {

struct Page::Families {
  std::vector<prometheus::MetricFamily> list;  // in the order in which the families got their first series
  std::map<std::string, std::size_t> places;

  prometheus::ClientMetric& add(const Described& family, const std::string* values, std::size_t labels);
};

namespace {

prometheus::MetricType type_of(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return prometheus::MetricType::Counter;
    case Kind::kGauge:
      return prometheus::MetricType::Gauge;
    case Kind::kHistogram:
      break;
  }
  return prometheus::MetricType::Histogram;
}

}  // namespace

Page::Page() : families_(std::make_unique<Families>()) {}
Page::~Page() = default;
Page::Page(Page&&) noexcept = default;
Page& Page::operator=(Page&&) noexcept = default;

prometheus::ClientMetric& Page::Families::add(const Described& family, const std::string* values, std::size_t labels) {
  const auto [place, is_new] = places.emplace(family.name, list.size());
  if (is_new) list.push_back({std::string("disttrain_") + family.name, family.help, type_of(family.kind), {}});
  prometheus::ClientMetric& metric = list[place->second].metric.emplace_back();
  for (std::size_t i = 0; i < labels; ++i) metric.label.push_back({family.labels[i], values[i]});
  return metric;
}

void Page::add(const Described& family, const std::string* values, std::size_t labels, double value) {
  prometheus::ClientMetric& metric = families_->add(family, values, labels);
  (family.kind == Kind::kCounter ? metric.counter.value : metric.gauge.value) = value;
}

void Page::add(const Described& family, const std::string* values, std::size_t labels, const double* bounds,
               const std::uint64_t* counts, std::size_t bounds_count, double sum) {
  auto& histogram = families_->add(family, values, labels).histogram;
  histogram.sample_sum = sum;
  for (std::size_t i = 0; i <= bounds_count; ++i) {
    histogram.sample_count += counts[i];
    const double bound = i < bounds_count ? bounds[i] : std::numeric_limits<double>::infinity();
    histogram.bucket.push_back({histogram.sample_count, bound});
  }
}

void Page::add_folder(const std::string& task, const std::string& folder, const std::string& path) {
  folders_.push_back({task, folder, path});
}

void Page::ask_folders(const Disks& disks) {
  const std::vector<Folder> folders = std::exchange(folders_, {});
  std::vector<std::string> paths;
  for (const Folder& folder : folders) paths.push_back(folder.path);
  const std::vector<std::optional<DiskSize>> sizes = disks.ask(paths);
  for (std::size_t i = 0; i < folders.size(); ++i) {
    if (!sizes[i]) continue;
    set(kDiskFreeBytes, {folders[i].task, folders[i].folder}, sizes[i]->free_bytes);
    set(kDiskSizeBytes, {folders[i].task, folders[i].folder}, sizes[i]->size_bytes);
  }
}

std::string Page::text() const {
  return prometheus::TextSerializer().Serialize(families_->list);
}

}  // namespace disttrain::metrics
