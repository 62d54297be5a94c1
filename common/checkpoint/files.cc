#include "common/checkpoint/files.h"

namespace disttrain::checkpoint {

Status remove_all(Files& files, const std::string& path) {
  const Result<EntryKind> kind = files.kind_of(path);
  if (!kind) return tl::unexpected(kind.error());
  if (*kind == EntryKind::kLink) return files.remove_file(path);
  const Result<std::vector<std::string>> names = files.list(path);
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names)
    if (Status removed = files.remove_file(path + "/" + name); !removed) return removed;
  return files.remove_directory(path);
}

Result<std::string> read_text(Files& files, const std::string& path, std::uint64_t max_bytes) {
  const Result<std::unique_ptr<InputFile>> file = files.open(path);
  if (!file) return tl::unexpected(file.error());
  const std::uint64_t size = (*file)->size();
  if (size > max_bytes)
    return fail(ErrorCode::kData, path + " has " + std::to_string(size) + " bytes; expected at most " +
                                      std::to_string(max_bytes) + ": disttrain never writes such a large file");
  std::string text(size, '\0');
  if (Status read = (*file)->read_at(0, std::as_writable_bytes(std::span(text))); !read)
    return tl::unexpected(read.error());
  return text;
}

Status write_text(Files& files, const std::string& path, const std::string& text) {
  const Result<std::unique_ptr<OutputFile>> file = files.create(path);
  if (!file) return tl::unexpected(file.error());
  if (Status written = (*file)->append(std::as_bytes(std::span(text))); !written) return written;
  return (*file)->sync();
}

}  // namespace disttrain::checkpoint
