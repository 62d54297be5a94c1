// Whole variables as a safetensors file that any reader takes.
#pragma once

#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/checkpoint/shard_file.h"
#include "common/checkpoint/weights.h"

namespace disttrain::checkpoint {

// Bytes that a variable takes in a file of that dtype.
std::uint64_t stored_bytes(const Weights::Variable& variable, DType dtype);

// Creates the file, with these variables (indices into weights.variables()) in this order, as `dtype` (F32, F16 or
// BF16; rounded to the nearest), with Hugging Face's metadata, and syncs it; the name isn't durable yet. Takes one
// chunk of memory. An error leaves what was written.
Status write_weights(Files& files, const std::string& path, Weights& weights, const std::vector<std::size_t>& variables,
                     DType dtype, const IsCancelled& is_cancelled = {});

}  // namespace disttrain::checkpoint
