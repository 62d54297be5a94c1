#include "tests/chiefd/journal/memory_disk.h"

#include <algorithm>

namespace disttrain::chiefd {
namespace {

tl::unexpected<Error> dark() {
  return fail(ErrorCode::kUnavailable, "the power is gone");
}

}  // namespace

class MemoryJournalDisk final : public JournalDisk {
 public:
  using Op = JournalPlatter::Op;

  explicit MemoryJournalDisk(JournalPlatter& platter) : platter_(platter) { platter_.is_locked_ = true; }
  ~MemoryJournalDisk() override { platter_.is_locked_ = false; }

  Result<std::optional<std::vector<std::byte>>> read(const std::string& name, std::uint64_t most) override {
    if (Status ok = platter_.check(Op::kRead, name); !ok) return tl::unexpected(ok.error());
    const auto file = platter_.names_.find(name);
    if (file == platter_.names_.end()) return std::nullopt;
    if (file->second->size() > most) return tl::unexpected(too_large_file(path_of(name), most));
    return *file->second;
  }
  Result<std::optional<std::vector<std::byte>>> read_first(const std::string& name, std::uint64_t most) override {
    if (Status ok = platter_.check(Op::kRead, name); !ok) return tl::unexpected(ok.error());
    const auto file = platter_.names_.find(name);
    if (file == platter_.names_.end()) return std::nullopt;
    std::vector<std::byte> bytes = *file->second;
    if (bytes.size() > most) bytes.resize(most);
    return bytes;
  }
  Status create(const std::string& name, std::span<const std::byte> bytes) override {
    if (Status ok = platter_.check(Op::kCreate, name); !ok) return ok;
    const bool is_cut = platter_.goes_dark();
    const std::size_t size = is_cut ? platter_.random_->below(bytes.size() + 1) : bytes.size();
    const auto first = bytes.first(size);
    auto file = std::make_shared<JournalPlatter::Bytes>(first.begin(), first.end());
    platter_.names_[name] = file;
    platter_.unsynced_.push_back({"", name, std::move(file)});
    if (is_cut) return dark();
    return {};
  }
  Status write(const std::string& name, std::span<const Piece> pieces) override {
    if (Status ok = platter_.check(Op::kWrite, name); !ok) return ok;
    const bool is_cut = platter_.goes_dark();
    JournalPlatter::Bytes& file = *platter_.names_.at(name);
    for (const Piece& piece : pieces) write_piece(file, piece, is_cut);
    if (is_cut) return dark();
    return {};
  }
  Status rename(const std::string& from, const std::string& to) override {
    if (Status ok = platter_.check(Op::kRename, from); !ok) return ok;
    const bool is_cut = platter_.goes_dark();
    auto node = platter_.names_.extract(from);
    platter_.unsynced_.push_back({from, to, node.mapped()});
    platter_.names_[to] = node.mapped();
    if (is_cut) return dark();
    return {};
  }
  void remove(const std::string& name) override { platter_.names_.erase(name); }
  Status sync_names() override {
    if (Status ok = platter_.check(Op::kSyncNames, ""); !ok) return ok;
    if (platter_.goes_dark()) return dark();
    platter_.durable_ = platter_.names_;
    platter_.unsynced_.clear();
    return {};
  }
  std::string path_of(const std::string& name) const override { return "/state/" + name; }

 private:
  // If the power fails during a write, the disk gets none of the piece's bytes, all of them, a part of them, zeros in
  // their place, or some of their sectors.
  void write_piece(JournalPlatter::Bytes& file, const Piece& piece, bool is_cut) {
    constexpr std::size_t kSector = 32;
    const std::uint64_t fate = is_cut ? platter_.random_->below(5) : 4;
    std::size_t size = piece.bytes.size();
    if (fate == 0) return;
    if (fate == 1) size = platter_.random_->below(size + 1);
    file.resize(std::max<std::size_t>(file.size(), piece.offset + size));
    for (std::size_t at = 0; at < size; at += kSector) {
      if (fate == 2 || (fate == 3 && platter_.random_->below(2) == 0)) continue;
      const auto part = piece.bytes.subspan(at, std::min(kSector, size - at));
      std::copy(part.begin(), part.end(), file.begin() + static_cast<std::ptrdiff_t>(piece.offset + at));
    }
  }

  JournalPlatter& platter_;
};

void JournalPlatter::cut_power_after(std::uint64_t operations, Random& random) {
  operations_left_ = operations;
  random_ = &random;
}

bool JournalPlatter::goes_dark() {
  ++operations_;
  if (!operations_left_ || (*operations_left_)-- > 0) return false;
  operations_left_.reset();
  return is_dark_ = true;
}

Status JournalPlatter::check(Op op, const std::string& name) const {
  if (is_dark_) return dark();
  if (!fault) return {};
  if (std::optional<Error> error = fault(op, name)) return tl::unexpected(std::move(*error));
  return {};
}

void JournalPlatter::restart(Random& random) {
  names_ = durable_;
  for (const NameChange& change : unsynced_) {
    if (random.below(2) == 0) continue;
    if (!change.from.empty()) names_.erase(change.from);
    names_[change.to] = change.file;
  }
  durable_ = names_;
  unsynced_.clear();
  operations_left_.reset();
  is_dark_ = false;
}

JournalPlatter::Bytes* JournalPlatter::content(const std::string& name) {
  const auto file = names_.find(name);
  return file == names_.end() ? nullptr : file->second.get();
}

void JournalPlatter::remove(const std::string& name) {
  names_.erase(name);
  durable_ = names_;
}

void JournalPlatter::put(const std::string& name, Bytes bytes) {
  names_[name] = std::make_shared<Bytes>(std::move(bytes));
  durable_ = names_;
}

JournalPlatter JournalPlatter::copied() const {
  JournalPlatter other;
  for (const auto& [name, file] : names_) other.put(name, *file);
  return other;
}

Result<std::unique_ptr<JournalDisk>> JournalPlatter::open() {
  if (is_locked_) return fail(ErrorCode::kConfig, "another chief keeps its journal in /state");
  return std::make_unique<MemoryJournalDisk>(*this);
}

}  // namespace disttrain::chiefd
