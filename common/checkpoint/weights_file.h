// Writes whole variables as a safetensors file that any reader accepts.
#pragma once

#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/checkpoint/shard_file.h"
#include "common/checkpoint/weights.h"

namespace disttrain::checkpoint {

// Bytes of a variable in a file of this dtype.
std::uint64_t stored_bytes(const Weights::Variable& variable, DType dtype);

// Creates the file with these variables (indices into weights.variables()) in this order, as `dtype` (F32, F16 or BF16;
// rounded to the nearest), with Hugging Face's metadata, and syncs it. The name isn't durable yet. Takes one chunk of
// memory. After an error the incomplete file stays.
Status write_weights(Files& files, const std::string& path, Weights& weights, const std::vector<std::size_t>& variables,
                     DType dtype, const IsCancelled& is_cancelled = {});

}  // namespace disttrain::checkpoint
