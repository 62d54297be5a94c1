#include "psd/store/nonfinite.h"

#include "common/doubles.h"
#include "common/update/vector.h"

namespace disttrain::psd {

std::optional<std::string> nonfinite_variable(const Layout& layout, BucketId bucket, std::span<const float> array) {
  for (const Slice& slice : slices_of(layout, bucket)) {
    const auto words = array.subspan(layout.buckets[bucket.value].shard_begin + slice.bucket_begin, slice.words);
    const bool is_finite = with_type(dtype_of(layout, bucket),
                                     [words]<typename T>(T) { return update::all_finite<T>(values_in<T>(words)); });
    if (!is_finite) return layout.model.variables[slice.variable].name;
  }
  return std::nullopt;
}

std::string nonfinite_text(const std::string& variable, std::size_t array) {
  return "the variable \"" + variable + "\" has a NaN or an infinity in its " +
         (array == 0 ? "parameters" : "slot " + std::to_string(array - 1));
}

}  // namespace disttrain::psd
