// One scrape: every series with its present value, as text for Prometheus. Each scrape makes a page from what the
// daemon's parts count for themselves, so that counting shares, locks and looks up nothing.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/histogram.h"
#include "common/metrics/disks.h"

namespace disttrain::metrics {

enum class Kind { kCounter, kGauge, kHistogram };

// A name with the labels of its series. families.h has all families.
template <std::size_t kLabels>
struct Family {
  const char* name;  // without the prefix "disttrain_"
  Kind kind;
  std::array<const char*, kLabels> labels;
  const char* help;
};

class Page {
 public:
  Page();
  ~Page();
  Page(Page&&) noexcept;
  Page& operator=(Page&&) noexcept;

  // Adds a series of a counter or a gauge; `values` of its labels in their order.
  template <std::size_t kLabels>
  void set(const Family<kLabels>& family, const std::string (&values)[kLabels], double value) {
    add(Described{family.name, family.kind, family.help, family.labels.data()}, values, kLabels, value);
  }
  void set(const Family<0>& family, double value) {
    add(Described{family.name, family.kind, family.help, nullptr}, nullptr, 0, value);
  }
  template <std::size_t kLabels, const auto& kBounds>
  void set(const Family<kLabels>& family, const std::string (&values)[kLabels], const Histogram<kBounds>& histogram) {
    add(Described{family.name, family.kind, family.help, family.labels.data()}, values, kLabels, kBounds.data(),
        histogram.counts().data(), kBounds.size(), histogram.sum());
  }
  // Asks for disk_free_bytes and disk_size_bytes of the file system of `path`.
  void add_folder(const std::string& task, const std::string& folder, const std::string& path);
  // Adds those series for all folders so far whose file system answers. A folder without an answer gets no series: an
  // old value would hide that it is unknown. Takes up to Disks::kPatience, so never call it on a loop.
  void ask_folders(const Disks& disks);

  // Prometheus' text format, version 0.0.4.
  std::string text() const;

 private:
  struct Described {
    const char* name;
    Kind kind;
    const char* help;
    const char* const* labels;
  };
  struct Folder {
    std::string task;
    std::string folder;
    std::string path;
  };
  struct Families;

  void add(const Described& family, const std::string* values, std::size_t labels, double value);
  void add(const Described& family, const std::string* values, std::size_t labels, const double* bounds,
           const std::uint64_t* counts, std::size_t bounds_count, double sum);

  std::unique_ptr<Families> families_;
  std::vector<Folder> folders_;
};

}  // namespace disttrain::metrics
