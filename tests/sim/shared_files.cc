#include "tests/sim/shared_files.h"

#include <utility>

namespace disttrain::sim {
namespace {

using checkpoint::InputFile;
using checkpoint::OutputFile;

class SharedInput final : public InputFile {
 public:
  SharedInput(std::unique_ptr<InputFile> file, std::function<Status()> check)
      : file_(std::move(file)), check_(std::move(check)) {}
  std::uint64_t size() const override { return file_->size(); }
  Status read_at(std::uint64_t offset, checkpoint::MutableBytes out) override {
    if (Status well = check_(); !well) return well;
    return file_->read_at(offset, out);
  }
  Result<bool> try_lock(checkpoint::LockKind kind) override { return file_->try_lock(kind); }
  Status make_private() override { return file_->make_private(); }

 private:
  const std::unique_ptr<InputFile> file_;
  const std::function<Status()> check_;
};

}  // namespace

Status SharedFiles::check(const std::string& path, bool reads) const {
  if (std::optional<Error> error = trouble(path, reads)) return tl::unexpected(std::move(*error));
  return {};
}

Result<std::unique_ptr<OutputFile>> SharedFiles::create(const std::string& path) {
  if (Status well = check(path, false); !well) return tl::unexpected(well.error());
  return disk().create(path);
}

Result<std::unique_ptr<OutputFile>> SharedFiles::create_private(const std::string& path) {
  return create(path);
}

Result<checkpoint::EntryKind> SharedFiles::kind_of(const std::string& path) {
  if (Status well = check(path, true); !well) return tl::unexpected(well.error());
  return disk().kind_of(path);
}

Result<std::unique_ptr<InputFile>> SharedFiles::open(const std::string& path) {
  if (Status well = check(path, true); !well) return tl::unexpected(well.error());
  Result<std::unique_ptr<InputFile>> file = disk().open(path);
  if (!file) return file;
  return std::make_unique<SharedInput>(std::move(*file), [this, path] { return check(path, true); });
}

Status SharedFiles::make_directory(const std::string& path) {
  if (Status well = check(path, false); !well) return well;
  return disk().make_directory(path);
}

Result<std::vector<std::string>> SharedFiles::list(const std::string& path) {
  if (Status well = check(path, true); !well) return tl::unexpected(well.error());
  return disk().list(path);
}

Status SharedFiles::rename(const std::string& from, const std::string& to) {
  if (Status well = check(from, false); !well) return well;
  return disk().rename(from, to);
}

Status SharedFiles::replace(const std::string& from, const std::string& to) {
  if (Status well = check(from, false); !well) return well;
  return disk().replace(from, to);
}

Status SharedFiles::remove_file(const std::string& path) {
  if (Status well = check(path, false); !well) return well;
  return disk().remove_file(path);
}

Status SharedFiles::remove_directory(const std::string& path) {
  if (Status well = check(path, false); !well) return well;
  return disk().remove_directory(path);
}

Status SharedFiles::sync_directory(const std::string& path) {
  if (Status well = check(path, false); !well) return well;
  return disk().sync_directory(path);
}

Result<std::string> SharedFiles::follow_links(const std::string& path) {
  return path;
}

}  // namespace disttrain::sim
