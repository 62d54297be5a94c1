#include "shards/store/nonfinite.h"

#include <optional>
#include <string>

#include "common/doubles.h"
#include "common/update/vector.h"

namespace disttrain::shards {
namespace {

// The name of a variable that has a NaN or an infinity in this bucket of the array.
std::optional<std::string> nonfinite_variable(const Layout& layout, BucketId bucket, std::span<const float> array) {
  for (const Slice& slice : slices_of(layout, bucket)) {
    const auto words = array.subspan(layout.buckets[bucket.value].shard_begin + slice.bucket_begin, slice.words);
    const bool is_finite = with_type(dtype_of(layout, bucket),
                                     [words]<typename T>(T) { return update::all_finite<T>(values_in<T>(words)); });
    if (!is_finite) return layout.model.variables[slice.variable].name;
  }
  return std::nullopt;
}

}  // namespace

Status check_finite(const Layout& layout, ShardId shard, const std::vector<std::span<const float>>& arrays,
                    const std::function<bool()>& is_cancelled) {
  for (const BucketId bucket : buckets_of(layout, shard)) {
    for (std::size_t i = 0; i < arrays.size(); ++i)
      if (const std::optional<std::string> variable = nonfinite_variable(layout, bucket, arrays[i]))
        return fail(ErrorCode::kData, "the variable \"" + *variable + "\" has a NaN or an infinity in its " +
                                          (i == 0 ? "parameters" : "slot " + std::to_string(i - 1)));
    if (is_cancelled && is_cancelled())
      return fail(ErrorCode::kTemporary, "the search for a NaN or an infinity was cancelled");
  }
  return {};
}

}  // namespace disttrain::shards
