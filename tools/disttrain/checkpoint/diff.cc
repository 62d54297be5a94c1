// disttrain checkpoint diff A B: compares the values of two checkpoints or safetensors files. The two may have
// different numbers of shards and files, because each variable is read in pieces that don't depend on them.
#include <cmath>
#include <cstring>
#include <iostream>

#include "common/checkpoint/disk_files.h"
#include "common/checkpoint/weights.h"
#include "common/counted.h"
#include "common/daemon/startup.h"
#include "common/printable.h"
#include "tools/disttrain/checkpoint/checkpoint.h"
#include "tools/disttrain/follow/progress.h"
#include "tools/disttrain/json.h"
#include "tools/disttrain/table.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

namespace {

using checkpoint::Weights;

constexpr std::uint64_t kElementsAtOnce = 256 * 1024;

// How two variables of the same shape differ.
struct Compared {
  std::uint64_t differing = 0;  // elements whose bits differ
  double largest = 0;           // largest absolute difference; NaN if an element is NaN in one of them
};

template <typename T>
void compare_weights(std::span<const T> a, std::span<const T> b, Compared& compared) {
  if (std::memcmp(a.data(), b.data(), a.size_bytes()) == 0) return;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(T)) == 0) continue;
    ++compared.differing;
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (std::isnan(difference) || difference > compared.largest) compared.largest = difference;
  }
}

// Compares the values as numbers of type T.
template <typename T>
Result<Compared> compare_weights(Weights& a, std::size_t in_a, Weights& b, std::size_t in_b) {
  Compared compared;
  std::vector<T> of_a;
  std::vector<T> of_b;
  const std::uint64_t elements = a.variables()[in_a].elements;
  for (std::uint64_t begin = 0; begin < elements; begin += of_a.size()) {
    of_a.resize(std::min(kElementsAtOnce, elements - begin));
    of_b.resize(of_a.size());
    if (Status read = a.read(in_a, begin, std::span(of_a)); !read) return tl::unexpected(read.error());
    if (Status read = b.read(in_b, begin, std::span(of_b)); !read) return tl::unexpected(read.error());
    compare_weights<T>(of_a, of_b, compared);
  }
  return compared;
}

Json only_in(const Weights& here, const Weights& there) {
  Json only = Json::array();
  for (const Weights::Variable& variable : here.variables())
    if (!there.find(variable.name)) only.push_back({{"name", variable.name}, {"shape", variable.shape}});
  return only;
}

Result<Json> compare_weights(Weights& a, Weights& b) {
  Json json = {{"a", a.path()},
               {"b", b.path()},
               {"equal", true},
               {"variables", Json::array()},
               {"shapes", Json::array()},
               {"only_in_a", only_in(a, b)},
               {"only_in_b", only_in(b, a)}};
  bool is_equal = json["only_in_a"].empty() && json["only_in_b"].empty();
  for (std::size_t v = 0; v < a.variables().size(); ++v) {
    const Weights::Variable& variable = a.variables()[v];
    const auto in_b = b.find(variable.name);
    if (!in_b) continue;
    const std::vector<std::uint64_t>& other_shape = b.variables()[*in_b].shape;
    if (variable.shape != other_shape) {
      json["shapes"].push_back({{"name", variable.name}, {"a", variable.shape}, {"b", other_shape}});
      is_equal = false;
      continue;
    }
    const bool has_doubles =
        variable.dtype == checkpoint::DType::kF64 || b.variables()[*in_b].dtype == checkpoint::DType::kF64;
    const Result<Compared> compared =
        has_doubles ? compare_weights<double>(a, v, b, *in_b) : compare_weights<float>(a, v, b, *in_b);
    if (!compared) return tl::unexpected(compared.error());
    is_equal = is_equal && compared->differing == 0;
    json["variables"].push_back({{"name", variable.name},
                                 {"shape", variable.shape},
                                 {"elements", variable.elements},
                                 {"equal", compared->differing == 0},
                                 {"differing", compared->differing},
                                 {"largest_difference", compared->largest}});
  }
  json["equal"] = is_equal;
  return json;
}

void print_difference(const Json& json) {
  Table table({"VARIABLE", "SHAPE", "ELEMENTS", "DIFFERING", "LARGEST DIFFERENCE"});
  for (const Json& one : json["variables"]) {
    char largest[32];
    std::snprintf(largest, sizeof(largest), "%.6g", one["largest_difference"].get<double>());
    table.add({text_of(one, "name"), one["shape"].dump(), with_commas(one["elements"].get<double>()),
               with_commas(one["differing"].get<double>()), one["equal"].get<bool>() ? "equal" : largest});
  }
  std::cout << table.text();
  for (const Json& one : json["shapes"])
    std::cout << printable(text_of(one, "name")) << " has shape " << one["a"].dump() << " in A, " << one["b"].dump()
              << " in B\n";
  for (const Json& one : json["only_in_a"])
    std::cout << printable(text_of(one, "name")) << ' ' << one["shape"].dump() << " is only in A\n";
  for (const Json& one : json["only_in_b"])
    std::cout << printable(text_of(one, "name")) << ' ' << one["shape"].dump() << " is only in B\n";
  std::cout << text_of(json, "a") << " and " << text_of(json, "b");
  if (json["equal"].get<bool>())
    std::cout << ": "
              << (json["variables"].size() == 1 ? "the variable is"
                                                : "all " + counted(json["variables"].size(), "variable") + " are")
              << " equal, bit for bit\n";
  else
    std::cout << " differ\n";
}

Result<Weights> open_weights(checkpoint::Files& files, const std::string& path, bool slots) {
  if (!slots) return Weights::open(files, path);
  Result<checkpoint::OpenCheckpoint> checkpoint = checkpoint::open_named(files, path);
  if (!checkpoint) return tl::unexpected(checkpoint.error());
  return Weights::of_checkpoint(files, std::move(*checkpoint), Weights::Slots::kToo);
}

}  // namespace

int checkpoint_diff(const CheckpointDiffOptions& options) {
  constexpr char kProgram[] = "disttrain checkpoint diff";
  checkpoint::DiskFiles files;
  Result<Weights> a = open_weights(files, absolute_path(options.a), options.slots);
  if (!a) return daemon::report(kProgram, a.error());
  Result<Weights> b = open_weights(files, absolute_path(options.b), options.slots);
  if (!b) return daemon::report(kProgram, b.error());
  const Result<Json> json = compare_weights(*a, *b);
  if (!json) return daemon::report(kProgram, json.error());
  if (options.json)
    std::cout << line_of(*json) << '\n';
  else
    print_difference(*json);
  return (*json)["equal"].get<bool>() ? 0 : 1;
}

}  // namespace disttrain::cli
