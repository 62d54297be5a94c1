// One scrape: every series with its value at this moment, as text for a Prometheus. A page is made anew for each scrape
// from what the daemon's parts count for themselves, so that nothing is shared, locked or looked up where they count.
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

// A name with the labels that each of its series has. families.h has all of them.
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

  // A series of a counter or a gauge; `values` of its labels in their order.
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
  // Notes that disk_free_bytes and disk_size_bytes are wanted of the file system that `path` lies on.
  void add_folder(const std::string& task, const std::string& folder, const std::string& path);
  // Adds those series of the folders noted so far whose file system answers; of the others there are none, as an old
  // value would hide that it isn't known. Takes up to Disks::kPatience: not on a loop.
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
