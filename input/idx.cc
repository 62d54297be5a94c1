#include "input/idx.h"

#include <array>
#include <cstdio>
#include <optional>
#include <span>
#include <string_view>

namespace disttrain::input {

namespace {

std::optional<ElementType> type_of(std::byte code) {
  switch (std::to_integer<int>(code)) {
    case 0x08:
      return ElementType::kU8;
    case 0x09:
      return ElementType::kI8;
    case 0x0B:
      return ElementType::kI16;
    case 0x0C:
      return ElementType::kI32;
    case 0x0D:
      return ElementType::kF32;
    case 0x0E:
      return ElementType::kF64;
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<ArrayHeader> read_idx_header(ByteSource& file) {
  const auto bad = [&file](const std::string& what) { return fail(ErrorCode::kData, file.path() + ": " + what); };
  std::array<std::byte, 4> magic{};
  Result<std::size_t> got = file.read(magic);
  if (!got) return tl::unexpected(got.error());
  if (*got == 0) return bad("is empty, expected an idx file: fetch or copy it again");
  if (*got < magic.size()) return bad("is truncated within its idx header: fetch or copy it again");
  const std::optional<ElementType> type = type_of(magic[2]);
  const std::size_t dimensions = std::to_integer<std::size_t>(magic[3]);
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0} || !type || dimensions == 0 || dimensions > kMaxDimensions) {
    char shown[16];
    std::snprintf(shown, sizeof shown, "%02x %02x %02x %02x", std::to_integer<unsigned>(magic[0]),
                  std::to_integer<unsigned>(magic[1]), std::to_integer<unsigned>(magic[2]),
                  std::to_integer<unsigned>(magic[3]));
    return bad(std::string("begins with the bytes ") + shown +
               ", expected idx's 00 00, a type (08, 09, 0b, 0c, 0d or 0e) and a number of dimensions: is data.format "
               "right, and is it a data file?");
  }
  std::vector<std::byte> sizes(dimensions * 4);
  got = file.read(sizes);
  if (!got) return tl::unexpected(got.error());
  if (*got < sizes.size()) return bad("is truncated within its idx header: fetch or copy it again");
  ArrayHeader header{*type, true, {}};
  for (std::size_t i = 0; i < sizes.size(); i += 4) {
    std::uint64_t size = 0;
    for (std::size_t j = 0; j < 4; ++j) size = size << 8 | std::to_integer<std::uint64_t>(sizes[i + j]);
    header.shape.push_back(size);
  }
  return header;
}

std::vector<std::string> idx_label_candidates(const std::string& image_path) {
  const std::size_t slash = image_path.rfind('/');
  const std::size_t name_begin = slash == std::string::npos ? 0 : slash + 1;
  std::string name = image_path.substr(name_begin);
  const std::size_t images = name.rfind("images");
  if (images == std::string::npos) return {};
  name.replace(images, 6, "labels");
  const std::size_t idx = name.rfind("idx");
  if (idx != std::string::npos && idx + 3 < name.size() && name[idx + 3] >= '1' && name[idx + 3] <= '9') {
    name[idx + 3] = '1';
  }
  const std::string candidate = image_path.substr(0, name_begin) + name;
  std::string plain = candidate;
  for (const std::string_view end : {".gz", ".zst"})
    if (candidate.ends_with(end)) plain.resize(candidate.size() - end.size());
  std::vector<std::string> candidates = {candidate};
  for (const char* const end : {"", ".gz", ".zst"})
    if (plain + end != candidate) candidates.push_back(plain + end);
  return candidates;
}

}  // namespace disttrain::input
