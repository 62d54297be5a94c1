// The answer to one scrape: every series with its current value, as text for Prometheus. Each scrape builds a new page
// from plain counters that the parts of the daemon keep. So a part that counts something shares no memory, takes no
// lock and looks nothing up.
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

// A metric family: a name and the labels that each of its series has. families.h lists all families.
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

  // Adds a series of a counter or a gauge. `values` are the values of the labels, in the order of the labels.
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
  // Remembers a folder for ask_folders(), which adds disk_free_bytes and disk_size_bytes of the file system of `path`.
  void add_folder(const std::string& task, const std::string& folder, const std::string& path);
  // Asks the file systems of all remembered folders and adds their series. A folder whose file system doesn't answer
  // gets no series, because an old value would look as if it were current. This takes up to Disks::kPatience, so never
  // call it on a loop.
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
