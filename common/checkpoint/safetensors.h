// The header of safetensors files (https://github.com/huggingface/safetensors): 8 bytes of little-endian header length
// N, N bytes of JSON, then the tensors' bytes. Any reader accepts what this writes; this reads only files that keep all
// rules.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/result.h"

namespace disttrain::checkpoint {

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

// All types that a file may hold, so that a file which also holds counters can be read. Values are read only from kF32,
// kF16 and kBF16.
enum class DType {
  kF32,
  kF16,
  kBF16,
  kF64,
  kBool,
  kU8,
  kI8,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kU16,
  kI16,
  kU32,
  kI32,
  kU64,
  kI64,
  kC64
};

struct Tensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::uint64_t> shape;  // row-major; empty: one element
  std::uint64_t begin = 0;           // of its bytes, from the start of the data
  std::uint64_t end = 0;

  bool operator==(const Tensor&) const = default;
};

// The tensors of a file, in the order of their bytes.
struct TensorTable {
  std::vector<Tensor> tensors;
  std::map<std::string, std::string> metadata;
  std::uint64_t data_begin = 0;  // in the file
};

std::uint64_t bytes_of(DType dtype);
// "BF16".
const char* name_of(DType dtype);

// The page size of a file system, so that data laid out in memory as in the file is written without a copy.
inline constexpr std::uint64_t kDataAlignment = 4096;

// The first bytes of the file, up to the data, which begins at a multiple of kDataAlignment. `tensors` follow each
// other from 0 and have different names.
std::string encode_header(const std::vector<Tensor>& tensors, const std::map<std::string, std::string>& metadata);

// Reads and checks a file's header. kData: a rule is broken, or the file is longer or shorter than its header says.
// kConfig: an unknown dtype.
Result<TensorTable> read_header(InputFile& file, const std::string& path);

}  // namespace disttrain::checkpoint
