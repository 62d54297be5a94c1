// A layout first orders the variables in the flat array and then cuts the array into buckets. So every payload is one
// piece of memory at both ends. If a job places whole variables on shards, the variables of one shard are next to each
// other and need few buckets.
//
// Instead of words, bytes were considered (each length in each file would have changed), and a second set of arrays for
// doubles (each place that moves a bucket would have had to choose). If the float64 variables didn't come first, a
// double could begin in the middle of 8 bytes, or the layout would need gaps. In a model with both types, the gradients
// of the float64 variables are sent first even if they are ready last. Such models are rare, and they only overlap
// less.
#include "common/layout.h"

#include <algorithm>
#include <limits>

#include "common/check.h"

namespace disttrain {

std::uint64_t element_count(const VariableSpec& variable) {
  std::uint64_t elements = 1;
  for (std::uint64_t dimension : variable.shape) elements *= dimension;
  return elements;
}

std::uint64_t element_count(const ModelSpec& model) {
  std::uint64_t elements = 0;
  for (const VariableSpec& variable : model.variables) elements += element_count(variable);
  return elements;
}

std::uint64_t word_count(const VariableSpec& variable) {
  return element_count(variable) * (size_of(variable.dtype) / sizeof(float));
}

std::uint64_t word_count(const ModelSpec& model) {
  std::uint64_t words = 0;
  for (const VariableSpec& variable : model.variables) words += word_count(variable);
  return words;
}

std::uint64_t element_count(const ColumnPart& part) {
  std::uint64_t elements = 1;
  for (std::uint64_t dimension : part.shape) elements *= dimension;
  return elements;
}

std::uint64_t element_count(const ColumnSpec& column) {
  std::uint64_t elements = 1;
  for (std::uint64_t dimension : column.shape) elements *= dimension;
  return elements;
}

std::uint64_t record_bytes(const ModelSpec& model) {
  std::uint64_t bytes = 0;
  for (const ColumnSpec& column : model.columns) bytes += element_count(column) * size_of(column.dtype);
  return bytes;
}

namespace {

Status refuse(const std::string& what) {
  return fail(ErrorCode::kData, "layout refused: " + what);
}

// Returns the number of words, or 0 if it is too large or a dimension is 0.
std::uint64_t checked_word_count(const VariableSpec& variable) {
  std::uint64_t elements = 1;
  for (std::uint64_t dimension : variable.shape) {
    if (dimension == 0 || elements > std::numeric_limits<std::uint32_t>::max() * std::uint64_t{1024} / dimension)
      return 0;
    elements *= dimension;
  }
  return elements * (size_of(variable.dtype) / sizeof(float));
}

}  // namespace

Status validate(const Layout& layout) {
  const auto& variables = layout.model.variables;
  if (layout.shards == 0) return refuse("it has no shards; expected at least 1");
  if (layout.variable_begins.size() != variables.size())
    return refuse("it lists " + std::to_string(layout.variable_begins.size()) + " variables; the model has " +
                  std::to_string(variables.size()));
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t words = 0;
    DType dtype = DType::kFloat32;
  };
  std::vector<Range> ranges;
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (variables[v].dtype != DType::kFloat32 && variables[v].dtype != DType::kFloat64)
      return refuse("variable " + variables[v].name + " is " + to_string(variables[v].dtype) +
                    "; expected float32 or float64");
    const std::uint64_t words = checked_word_count(variables[v]);
    if (words == 0) return refuse("variable " + variables[v].name + " has no elements, or too many");
    ranges.push_back({layout.variable_begins[v], words, variables[v].dtype});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::uint64_t end = 0;
  std::uint64_t doubles_end = 0;  // the words before it belong to float64 variables
  for (const Range& range : ranges) {
    if (range.begin != end) return refuse("variables leave a gap or overlap at word " + std::to_string(end));
    if (range.dtype == DType::kFloat64 && doubles_end != end)
      return refuse("a float64 variable lies behind a float32 variable at word " + std::to_string(end));
    end += range.words;
    if (range.dtype == DType::kFloat64) doubles_end = end;
  }
  std::uint64_t flat = 0;
  if (layout.shards > layout.buckets.size()) return refuse("there are more shards than buckets");
  std::vector<std::uint64_t> shard_end(layout.shards, 0);
  for (const Bucket& bucket : layout.buckets) {
    if (bucket.shard.value >= layout.shards)
      return refuse("a bucket belongs to shard " + std::to_string(bucket.shard.value) + "; the number of shards is " +
                    std::to_string(layout.shards));
    if (bucket.words == 0 || bucket.words > kMaxBucketWords)
      return refuse("a bucket has " + std::to_string(bucket.words) + " words; expected 1 to " +
                    std::to_string(kMaxBucketWords));
    if (bucket.flat_begin != flat || bucket.shard_begin != shard_end[bucket.shard.value])
      return refuse("buckets leave a gap or overlap at word " + std::to_string(flat));
    if (flat < doubles_end && (bucket.words % 2 != 0 || bucket.words > doubles_end - flat))
      return refuse("a bucket at word " + std::to_string(flat) + " has " + std::to_string(bucket.words) +
                    " words; expected whole float64 elements and nothing else");
    flat += bucket.words;
    shard_end[bucket.shard.value] += bucket.words;
  }
  if (flat != end)
    return refuse("the buckets have " + std::to_string(flat) + " words in all; the model has " + std::to_string(end));
  for (std::uint32_t shard = 0; shard < layout.shards; ++shard)
    if (shard_end[shard] == 0) return refuse("shard " + std::to_string(shard) + " has no bucket");
  return {};
}

LayoutHash hash_of(const Layout& layout) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a, 64 bits
  const auto add_byte = [&hash](unsigned char byte) { hash = (hash ^ byte) * 1099511628211u; };
  const auto add = [&add_byte](std::uint64_t value) {
    for (int i = 0; i < 8; ++i) add_byte(static_cast<unsigned char>(value >> (8 * i)));
  };
  add(layout.shards);
  for (const VariableSpec& variable : layout.model.variables) {
    add(variable.name.size());
    for (char c : variable.name) add_byte(static_cast<unsigned char>(c));
    add(variable.shape.size());
    for (std::uint64_t dimension : variable.shape) add(dimension);
    add(static_cast<std::uint64_t>(variable.kind));
    add(static_cast<std::uint64_t>(variable.dtype));
  }
  for (std::uint64_t begin : layout.variable_begins) add(begin);
  for (const Bucket& bucket : layout.buckets) {
    add(bucket.shard.value);
    add(bucket.words);
  }
  return LayoutHash(hash);
}

std::uint64_t shard_words(const Layout& layout, ShardId shard) {
  std::uint64_t words = 0;
  for (const Bucket& bucket : layout.buckets)
    if (bucket.shard == shard) words += bucket.words;
  return words;
}

DType dtype_of(const Layout& layout, BucketId bucket) {
  return layout.model.variables[slices_of(layout, bucket).front().variable].dtype;
}

std::vector<BucketId> buckets_of(const Layout& layout, ShardId shard) {
  std::vector<BucketId> ids;
  for (std::uint32_t b = 0; b < layout.buckets.size(); ++b)
    if (layout.buckets[b].shard == shard) ids.push_back(BucketId(b));
  return ids;
}

std::vector<Slice> slices_of(const Layout& layout, BucketId bucket) {
  const Bucket& b = layout.buckets.at(bucket.value);
  std::vector<Slice> slices;
  for (std::uint32_t v = 0; v < layout.model.variables.size(); ++v) {
    const std::uint64_t begin = layout.variable_begins[v];
    const std::uint64_t end = begin + word_count(layout.model.variables[v]);
    const std::uint64_t from = std::max(begin, b.flat_begin);
    const std::uint64_t to = std::min(end, b.flat_begin + b.words);
    if (from < to) slices.push_back(Slice{v, from - begin, from - b.flat_begin, to - from});
  }
  std::sort(slices.begin(), slices.end(),
            [](const Slice& x, const Slice& y) { return x.bucket_begin < y.bucket_begin; });
  return slices;
}

}  // namespace disttrain
