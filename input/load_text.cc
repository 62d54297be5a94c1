#include <algorithm>
#include <atomic>
#include <utility>

#include "input/file_reader.h"
#include "input/find_files.h"
#include "input/load.h"
#include "input/load_tokenizer.h"
#include "input/memory_budget.h"
#include "input/read_parallel.h"
#include "input/tokenise_text.h"

namespace disttrain::input {

namespace {

struct Content {
  std::vector<std::byte> bytes;  // of the tokens
  std::uint64_t file_bytes = 0;
};

Result<Content> read_content(const Source& source, const std::string& path) {
  constexpr std::uint64_t kChunk = 1 << 20;
  Result<std::unique_ptr<FileReader>> file = FileReader::open(path, source.is_cancelled, source.max_expansion);
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

std::uint64_t windows_in(std::uint64_t tokens, const Source& source) {
  return tokens < source.window ? 0 : (tokens - source.window) / source.stride + 1;
}

// The memory that the tokens of all files take so far, and the most that they may take.
struct TokenRoom {
  const std::uint64_t most;
  std::atomic<std::uint64_t> used{0};
};

Result<Content> read_tokens(const Source& source, const Tokenizer& tokenizer, const std::string& path,
                            TokenRoom& room) {
  Result<Content> content = read_content(source, path);
  if (!content) return content;
  const auto may_go_on = [&](std::uint64_t tokens) -> Status {
    if (source.is_cancelled && source.is_cancelled()) return fail(ErrorCode::kTemporary, "reading was cancelled");
    const std::uint64_t bytes = tokens * sizeof(std::int32_t);
    if (room.used.fetch_add(bytes) + bytes <= room.most) return {};
    return fail(ErrorCode::kConfig, "the tokens of the files " + source.files + " take more than " +
                                        std::to_string(room.most >> 20) +
                                        " MiB of memory: raise data.memory, or take fewer files");
  };
  const Result<std::vector<std::int32_t>> ids = tokenise_text(tokenizer, content->bytes, may_go_on);
  if (!ids) return fail(ids.error().code, path + ": " + ids.error().message);
  const auto bytes = std::as_bytes(std::span(*ids));
  content->bytes.assign(bytes.begin(), bytes.end());
  return content;
}

}  // namespace

Result<Text> load_text(const Source& source) {
  const Result<std::vector<std::string>> paths = find_files(source, source.files, source.files_key);
  if (!paths) return tl::unexpected(paths.error());
  std::shared_ptr<const Tokenizer> tokenizer;
  if (!source.tokenizer.empty()) {
    Result<LoadedTokenizer> loaded = load_tokenizer(source.tokenizer, "data.tokenizer");
    if (!loaded) return tl::unexpected(std::move(loaded.error()));
    tokenizer = std::move(loaded->tokenizer);
  }
  TokenRoom room{memory_budget(source.memory)};
  Result<std::vector<Content>> contents = read_parallel<Content>(*paths, [&](const std::string& path) {
    return tokenizer ? read_tokens(source, *tokenizer, path, room) : read_content(source, path);
  });
  if (!contents) return tl::unexpected(contents.error());

  Text text;
  if (tokenizer) {
    text.dtype = DType::kInt32;
    text.largest = tokenizer->size() - 1;
  }
  const std::size_t token_bytes = size_of(text.dtype);
  text.window = source.window;
  text.stride = source.stride;
  std::uint64_t total = 0;
  for (const Content& content : *contents) total += content.bytes.size();
  if (contents->size() > 1) text.bytes.reserve(total);
  for (Content& content : *contents) {
    text.bytes_read += content.file_bytes;
    const std::uint64_t windows = windows_in(content.bytes.size() / token_bytes, source);
    if (windows > 0) text.files.push_back({text.records, text.bytes.size() / token_bytes});
    text.records += windows;
    if (contents->size() == 1)
      text.bytes = std::move(content.bytes);
    else
      text.bytes.insert(text.bytes.end(), content.bytes.begin(), content.bytes.end());
    content.bytes = {};
  }
  if (text.records > 0) return text;
  return fail(ErrorCode::kData, source.path + "/" + source.files + ": the largest of these files is shorter than a " +
                                    "record of " + std::to_string(source.window) + (tokenizer ? " tokens" : " bytes") +
                                    ": choose other files or a smaller data.window");
}

}  // namespace disttrain::input
