// Reads and writes the header of safetensors files (https://github.com/huggingface/safetensors). Such a file has the
// length N of its header (8 bytes, little-endian), N bytes of JSON, and then the bytes of the tensors. Any safetensors
// reader accepts the files that this code writes. This code refuses files that break a rule of the format.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/result.h"

namespace disttrain::checkpoint {

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

// All types that the format has. A file with tensors of any of these types can be opened, but only the values of kF32,
// kF64, kF16 and kBF16 tensors can be read.
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
  std::uint64_t begin = 0;           // position of the tensor's first byte, counted from the start of the data
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

// The page size of a file system. If the data in memory and in the file have this alignment, the data is written
// without a copy.
inline constexpr std::uint64_t kDataAlignment = 4096;

// Returns the bytes of a file up to the data. The data then begins at a multiple of kDataAlignment. The offsets of
// `tensors` must begin at 0 and leave no gaps; their names must differ.
std::string encode_header(const std::vector<Tensor>& tensors, const std::map<std::string, std::string>& metadata);

// Reads and checks the header of a file. Fails with kData if it breaks a rule, or if the file is longer or shorter than
// the header says. Fails with kConfig if a dtype is unknown. Takes linear time, half a second for 400,000 tensors, and
// calls `is_cancelled` every few MiB and every few thousand tensors; fails with kTemporary if it returned true.
Result<TensorTable> read_header(InputFile& file, const std::string& path, const IsCancelled& is_cancelled = {});

}  // namespace disttrain::checkpoint
