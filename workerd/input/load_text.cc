#include <algorithm>
#include <utility>

#include "workerd/input/file_reader.h"
#include "workerd/input/find_files.h"
#include "workerd/input/load.h"
#include "workerd/input/read_parallel.h"

namespace disttrain::input {

namespace {

struct Content {
  std::vector<std::byte> bytes;
  std::uint64_t file_bytes = 0;
};

Result<Content> read_content(const Source& source, const std::string& path) {
  constexpr std::uint64_t kChunk = 1 << 20;
  Result<std::unique_ptr<FileReader>> file = FileReader::open(path, source.is_cancelled);
  if (!file) return tl::unexpected(std::move(file.error()));
  Content content{{}, (*file)->file_bytes()};
  // A vector keeps its memory when it becomes smaller, and a data set may have many small files.
  const std::uint64_t known = (*file)->packed() ? 0 : (*file)->file_bytes();
  content.bytes.reserve(known + 1);
  for (;;) {
    const std::size_t size = content.bytes.size();
    const std::uint64_t piece = size <= known && known > 0 ? std::min(kChunk, known + 1 - size) : kChunk;
    content.bytes.resize(size + piece);
    const Result<std::size_t> got = (*file)->read(std::span(content.bytes).subspan(size));
    if (!got) return tl::unexpected(got.error());
    content.bytes.resize(size + *got);
    if (*got < piece) break;
  }
  if (known == 0) content.bytes.shrink_to_fit();
  return content;
}

std::uint64_t windows_in(std::uint64_t bytes, const Source& source) {
  return bytes < source.window ? 0 : (bytes - source.window) / source.stride + 1;
}

}  // namespace

Result<Text> load_text(const Source& source) {
  const Result<std::vector<std::string>> paths = find_files(source, source.files, source.files_key);
  if (!paths) return tl::unexpected(paths.error());
  Result<std::vector<Content>> contents =
      read_parallel<Content>(*paths, [&source](const std::string& path) { return read_content(source, path); });
  if (!contents) return tl::unexpected(contents.error());

  Text text;
  text.window = source.window;
  text.stride = source.stride;
  std::uint64_t total = 0;
  for (const Content& content : *contents) total += content.bytes.size();
  if (contents->size() > 1) text.bytes.reserve(total);
  for (Content& content : *contents) {
    text.bytes_read += content.file_bytes;
    const std::uint64_t windows = windows_in(content.bytes.size(), source);
    if (windows > 0) text.files.push_back({text.records, text.bytes.size()});
    text.records += windows;
    if (contents->size() == 1)
      text.bytes = std::move(content.bytes);
    else
      text.bytes.insert(text.bytes.end(), content.bytes.begin(), content.bytes.end());
    content.bytes = {};
  }
  if (text.records > 0) return text;
  return fail(ErrorCode::kData, source.path + "/" + source.files + ": the largest of these files is shorter than a " +
                                    "record of " + std::to_string(source.window) +
                                    " bytes: choose other files or a smaller data.window");
}

}  // namespace disttrain::input
