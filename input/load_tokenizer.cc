#include "input/load_tokenizer.h"

#include <xxhash.h>

#include <span>
#include <utility>

#include "input/file_reader.h"

namespace disttrain::input {

namespace {

Result<std::string> content_of(const std::string& path) {
  constexpr std::size_t kChunk = 1 << 20;
  const Result<std::unique_ptr<FileReader>> file = FileReader::open(path);
  if (!file) return tl::unexpected(file.error());
  std::string content;
  while (content.size() <= kMaxTokenizerBytes) {
    const std::size_t size = content.size();
    content.resize(size + kChunk);
    const Result<std::size_t> got = (*file)->read(std::as_writable_bytes(std::span(content).subspan(size)));
    if (!got) return tl::unexpected(got.error());
    content.resize(size + *got);
    if (*got < kChunk) return content;
  }
  return fail(ErrorCode::kData, path + ": is larger than " + std::to_string(kMaxTokenizerBytes >> 20) +
                                    " MiB, expected the file of a tokenizer");
}

}  // namespace

Result<LoadedTokenizer> load_tokenizer(const std::string& path, const std::string& key) {
  const bool is_json = path.ends_with(".json");
  if (!is_json && !path.ends_with(".model"))
    return fail(ErrorCode::kConfig, path + ": " + key +
                                        " must name a file that ends in .json (tokenizer.json of Hugging Face) or in "
                                        ".model (SentencePiece)");
  const Result<std::string> content = content_of(path);
  if (!content) return fail(content.error().code, key + ": " + content.error().message);
  Result<std::shared_ptr<const Tokenizer>> tokenizer =
      is_json ? read_tokenizer_json(*content) : read_sentencepiece_model(*content);
  if (!tokenizer) return fail(tokenizer.error().code, key + ": " + path + ": " + tokenizer.error().message);
  return LoadedTokenizer{std::move(*tokenizer), XXH3_64bits(content->data(), content->size())};
}

}  // namespace disttrain::input
