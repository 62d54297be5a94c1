// Writes whole variables to a safetensors file that any safetensors reader accepts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/checkpoint/shard_file.h"
#include "common/checkpoint/weights.h"

namespace disttrain::checkpoint {

// A tensor of the file: the values of a variable (an index into Weights::variables()) under any name and with any
// convertible dtype (numbers.h), or with the dtype that the variable is stored with.
struct StoredTensor {
  std::string name;
  std::size_t variable = 0;
  DType dtype = DType::kF32;
};

// The tensor's size in the file, in bytes.
std::uint64_t stored_bytes(const Weights& weights, const StoredTensor& tensor);

// Creates a safetensors file, writes the tensors to it in their order, and syncs it. Their names must differ. Values
// whose dtype changes are converted by way of float32. The file gets `metadata`, and the metadata that Hugging Face's
// readers expect. The caller must sync the folder to make the file's name survive a crash. Uses memory for one chunk.
// After an error the incomplete file stays.
Status write_weights(Files& files, const std::string& path, Weights& weights, const std::vector<StoredTensor>& tensors,
                     const IsCancelled& is_cancelled = {}, std::map<std::string, std::string> metadata = {});

}  // namespace disttrain::checkpoint
