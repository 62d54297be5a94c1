// Writes whole variables to a safetensors file that any safetensors reader accepts.
#pragma once

#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/checkpoint/shard_file.h"
#include "common/checkpoint/weights.h"

namespace disttrain::checkpoint {

// The size in bytes of a variable that is stored with this dtype.
std::uint64_t stored_bytes(const Weights::Variable& variable, DType dtype);

// Creates a safetensors file, writes variables to it, and syncs it. `variables` has their indices in
// weights.variables(), in the order in which they are written. Converts the values to `dtype` (F32, F16 or BF16) with
// rounding to nearest. Adds the metadata that Hugging Face's readers expect. The caller must sync the folder to make
// the file's name survive a crash. Uses memory for one chunk. After an error the incomplete file stays.
Status write_weights(Files& files, const std::string& path, Weights& weights, const std::vector<std::size_t>& variables,
                     DType dtype, const IsCancelled& is_cancelled = {});

}  // namespace disttrain::checkpoint
