#include "input/probability_labels.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>

#include "input/probability.h"
#include "input/typed_values.h"

namespace disttrain::input {

namespace {

std::string number_as_text(double number) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), number).ptr;
  return {text, end};
}

struct BadLabel {
  std::uint64_t place = 0;  // among the values
  double label = 0.0;
};

// The first of `values` from place `begin` to place `end` that is no probability.
template <typename T>
std::optional<BadLabel> first_wrong(std::span<const T> values, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t i = begin; i < end; ++i)
    if (!is_probability(static_cast<double>(values[i]))) return BadLabel{i, static_cast<double>(values[i])};
  return std::nullopt;
}

std::optional<BadLabel> first_wrong(const Contents& contents, std::uint64_t begin, std::uint64_t end) {
  if (!contents.labels.empty()) return first_wrong<std::int64_t>(contents.labels, begin, end);
  const Values& targets = contents.targets;
  const std::size_t bytes = contents.records * targets.elements * size_of(targets.dtype);
  std::optional<BadLabel> bad;
  with_type(targets.dtype, {targets.bytes.get(), bytes}, [&]<typename T>(std::span<T> values) {
    bad = first_wrong<T>(values, begin * targets.elements, end * targets.elements);
  });
  return bad;
}

}  // namespace

std::vector<LabelFile> label_files(const std::vector<Array>& labels) {
  std::vector<LabelFile> files;
  for (const Array& array : labels) files.push_back({array.path, array.rows()});
  return files;
}

Status check_probabilities(const Source& source, const std::vector<LabelFile>& files, const Contents& contents) {
  const std::uint64_t elements = contents.labels.empty() ? contents.targets.elements : 1;
  if (source.sigmoid_outputs == 0 || elements != source.sigmoid_outputs) return {};
  const std::uint64_t end = source.end == 0 ? contents.records : std::min(source.end, contents.records);
  const std::optional<BadLabel> bad = first_wrong(contents, std::min(source.begin, end), end);
  if (!bad) return {};
  std::uint64_t record = bad->place / elements;
  std::size_t file = 0;
  for (; record >= files[file].records; ++file) record -= files[file].records;
  return fail(ErrorCode::kData, files[file].path + ": value " + std::to_string(bad->place % elements) + " of record " +
                                    std::to_string(record) + " is the label " + number_as_text(bad->label) +
                                    kExpectedProbability +
                                    "if there are two labels, write them as 0 and 1; otherwise choose another "
                                    "model.loss");
}

}  // namespace disttrain::input
