#include "common/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/bounded_json.h"
#include "common/check.h"

namespace disttrain::checkpoint {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little,
              "safetensors are little-endian, and this program copies them without swapping bytes");

constexpr const char* kMetadata = "__metadata__";

struct DTypeEntry {
  DType dtype;
  const char* name;
  std::uint64_t bytes;
};
constexpr DTypeEntry kDTypes[] = {
    {DType::kF32, "F32", 4},        {DType::kF16, "F16", 2},        {DType::kBF16, "BF16", 2},
    {DType::kF64, "F64", 8},        {DType::kBool, "BOOL", 1},      {DType::kU8, "U8", 1},
    {DType::kI8, "I8", 1},          {DType::kF8E4M3, "F8_E4M3", 1}, {DType::kF8E5M2, "F8_E5M2", 1},
    {DType::kF8E8M0, "F8_E8M0", 1}, {DType::kU16, "U16", 2},        {DType::kI16, "I16", 2},
    {DType::kU32, "U32", 4},        {DType::kI32, "I32", 4},        {DType::kU64, "U64", 8},
    {DType::kI64, "I64", 8},        {DType::kC64, "C64", 8}};

const DTypeEntry& entry_of(DType dtype) {
  const auto found = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                  [dtype](const DTypeEntry& entry) { return entry.dtype == dtype; });
  DISTTRAIN_CHECK(found != std::end(kDTypes));
  return *found;
}

// Accepts only non-negative integers.
bool read_sizes(const Json& json, std::vector<std::uint64_t>& sizes) {
  if (!json.is_array()) return false;
  for (const Json& entry : json) {
    if (!entry.is_number_unsigned()) return false;
    sizes.push_back(entry.get<std::uint64_t>());
  }
  return true;
}

// Returns false if the product exceeds 64 bits.
bool product_of(const std::vector<std::uint64_t>& sizes, std::uint64_t& product) {
  for (const std::uint64_t size : sizes)
    if (__builtin_mul_overflow(product, size, &product)) return false;
  return true;
}

class Parser {
 public:
  explicit Parser(const std::string& path) : path_(path) {}

  Result<TensorTable> parse(const std::string& text, std::uint64_t data_bytes) {
    if (text.empty() || text.front() != '{') return bad("its header doesn't begin with {");
    const Json json = parse_bounded_json(text);
    if (json.is_discarded() || !json.is_object()) return bad("its header isn't JSON");
    if (has_key_twice(text)) return bad("its header has a key twice");  // the format forbids it
    TensorTable table;
    for (const auto& [name, entry] : json.items()) {
      if (name == kMetadata) {
        if (Status read = read_metadata(entry, table); !read) return tl::unexpected(read.error());
      } else if (Status read = read_tensor(name, entry, table); !read) {
        return tl::unexpected(read.error());
      }
    }
    std::sort(table.tensors.begin(), table.tensors.end(), [](const Tensor& a, const Tensor& b) {
      return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
    });
    std::uint64_t at = 0;
    for (const Tensor& tensor : table.tensors) {
      if (tensor.begin != at)
        return bad("tensor " + tensor.name + " begins at byte " + std::to_string(tensor.begin) + "; expected " +
                   std::to_string(at));
      at = tensor.end;
    }
    if (at != data_bytes)
      return bad("its tensors end at byte " + std::to_string(at) + ", its data ends at byte " +
                 std::to_string(data_bytes) + ": it is truncated, or something was appended");
    return table;
  }

 private:
  tl::unexpected<Error> bad(const std::string& what, ErrorCode code = ErrorCode::kData) const {
    return fail(code, path_ + " isn't a valid safetensors file: " + what);
  }

  Status read_metadata(const Json& entry, TensorTable& table) const {
    if (!entry.is_object()) return bad("__metadata__ isn't an object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) return bad("__metadata__ " + key + " isn't a string");
      table.metadata[key] = value.get<std::string>();
    }
    return {};
  }

  Status read_tensor(const std::string& name, const Json& entry, TensorTable& table) const {
    Tensor tensor;
    tensor.name = name;
    std::vector<std::uint64_t> offsets;
    if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") || !entry["dtype"].is_string() ||
        !entry.contains("shape") || !read_sizes(entry["shape"], tensor.shape) || !entry.contains("data_offsets") ||
        !read_sizes(entry["data_offsets"], offsets) || offsets.size() != 2)
      return bad("tensor " + name + " must have dtype, shape, two data_offsets and nothing else");
    const std::string dtype = entry["dtype"].get<std::string>();
    const auto known = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                    [&dtype](const DTypeEntry& one) { return one.name == dtype; });
    if (known == std::end(kDTypes))
      return bad("tensor " + name + " has the unknown dtype " + dtype + "; F32, F16 and BF16 can be read",
                 ErrorCode::kConfig);
    tensor.dtype = known->dtype;
    tensor.begin = offsets[0];
    tensor.end = offsets[1];
    std::uint64_t bytes = bytes_of(tensor.dtype);
    if (!product_of(tensor.shape, bytes) || tensor.end < tensor.begin || tensor.end - tensor.begin != bytes)
      return bad("tensor " + name + " has bytes [" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) +
                 "), but its shape needs another number of bytes");
    table.tensors.push_back(std::move(tensor));
    return {};
  }

  const std::string& path_;
};

// What a file is that begins with these 8 bytes, if it is what torch.save() writes. Otherwise null. Call it only if the
// bytes can't be the length of a header.
const char* other_format(std::uint64_t first_bytes) {
  constexpr std::uint64_t kZip = 0x04034b50;  // "PK\3\4"
  if ((first_bytes & 0xffffffff) == kZip) return "a zip archive, as torch.save() writes it (.pt, .pth, .bin)";
  const std::uint64_t pickle = first_bytes & 0xffff;  // the opcode PROTO and its version
  if ((pickle & 0xff) == 0x80 && (pickle >> 8) >= 2 && (pickle >> 8) <= 5)
    return "a pickle, as old versions of torch.save() write it (.pt, .pth, .bin)";
  return nullptr;
}

}  // namespace

std::uint64_t bytes_of(DType dtype) {
  return entry_of(dtype).bytes;
}

const char* name_of(DType dtype) {
  return entry_of(dtype).name;
}

// Builds the JSON text by hand, because the keys must be in the order of the data. nlohmann::json would sort the keys,
// and its ordered variant takes quadratic time.
std::string encode_header(const std::vector<Tensor>& tensors, const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  if (!metadata.empty()) text += "\"" + std::string(kMetadata) + "\":" + Json(metadata).dump();
  std::uint64_t at = 0;
  for (const Tensor& tensor : tensors) {
    DISTTRAIN_CHECK_EQ(tensor.begin, at);
    at = tensor.end;
    const Json entry = {
        {"dtype", name_of(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {tensor.begin, tensor.end}}};
    text += (text.size() > 1 ? "," : "") + Json(tensor.name).dump() + ":" + entry.dump();
  }
  text += "}";
  std::uint64_t length = text.size();
  const std::uint64_t whole = (sizeof(length) + length + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
  length = whole - sizeof(length);
  text.resize(length, ' ');
  std::string header(sizeof(length), '\0');
  std::memcpy(header.data(), &length, sizeof(length));
  return header + text;
}

Result<TensorTable> read_header(InputFile& file, const std::string& path) {
  std::uint64_t length = 0;
  if (file.size() < sizeof(length))
    return fail(ErrorCode::kData,
                path + " has " + std::to_string(file.size()) + " bytes; it is too short for a safetensors file");
  if (Status read = file.read_at(0, std::as_writable_bytes(std::span(&length, 1))); !read)
    return tl::unexpected(read.error());
  if (length > kMaxHeaderBytes || length > file.size() - sizeof(length)) {
    if (const char* const other = other_format(length); other != nullptr)
      return fail(
          ErrorCode::kConfig,
          path + " is " + other +
              ", not a safetensors file: convert it once with Python, where it was written: `import torch, "
              "safetensors.torch; state = torch.load(\"" +
              path.substr(path.rfind('/') + 1) +
              "\", map_location=\"cpu\"); state = state.get(\"state_dict\", state); "
              "safetensors.torch.save_file({name: value.contiguous().clone() for name, value in state.items()}, "
              "\"weights.safetensors\")`, and name the new file");
    return fail(ErrorCode::kData, path + " says that its header has " + std::to_string(length) +
                                      " bytes, but the file has " + std::to_string(file.size()) +
                                      " bytes and a header has at most " + std::to_string(kMaxHeaderBytes) +
                                      " bytes: the file is truncated, or isn't a safetensors file");
  }
  std::string text(length, '\0');
  if (Status read = file.read_at(sizeof(length), std::as_writable_bytes(std::span(text))); !read)
    return tl::unexpected(read.error());
  const std::uint64_t data_begin = sizeof(length) + length;
  Result<TensorTable> table = Parser(path).parse(text, file.size() - data_begin);
  if (table) table->data_begin = data_begin;
  return table;
}

}  // namespace disttrain::checkpoint
