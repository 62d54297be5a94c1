#include "tests/common/checkpoint/memory_files.h"

#include <algorithm>
#include <cstring>

#include "common/checkpoint/checksum.h"

namespace disttrain::checkpoint {
namespace {

std::string parent_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

std::string name_in(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

tl::unexpected<Error> missing(const std::string& path) {
  return fail(ErrorCode::kNoInput, path + " isn't there");
}

}  // namespace

class MemoryOutput final : public OutputFile {
 public:
  MemoryOutput(MemoryFiles& files, std::string path, MemoryFiles::NodeId node)
      : files_(files), path_(std::move(path)), node_(node) {}
  Status reserve(std::uint64_t) override { return files_.check(MemoryFiles::Op::kReserve, path_); }
  Status append(Bytes bytes) override {
    if (Status ok = files_.check(MemoryFiles::Op::kAppend, path_); !ok) return ok;
    std::vector<std::byte>& content = files_.nodes_[node_]->bytes;
    content.insert(content.end(), bytes.begin(), bytes.end());
    files_.log({{MemoryFiles::Op::kAppend, path_, ""}, node_, 0, bytes.size()});
    return {};
  }
  Status sync() override {
    if (Status ok = files_.check(MemoryFiles::Op::kSync, path_); !ok) return ok;
    if (!files_.lies || !files_.lies(MemoryFiles::Op::kSync, path_))
      files_.log({{MemoryFiles::Op::kSync, path_, ""}, node_, 0, 0});
    return {};
  }

 private:
  MemoryFiles& files_;
  const std::string path_;
  const MemoryFiles::NodeId node_;
};

class MemoryInput final : public InputFile {
 public:
  MemoryInput(MemoryFiles::Node& node, std::string path) : node_(node), path_(std::move(path)) {}
  ~MemoryInput() override {
    if (held_ == LockKind::kShared) --node_.readers;
    if (held_ == LockKind::kExclusive) node_.writer = false;
  }
  std::uint64_t size() const override { return node_.bytes.size(); }
  Status read_at(std::uint64_t offset, MutableBytes out) override {
    if (offset + out.size() > node_.bytes.size()) return fail(ErrorCode::kData, path_ + " ends too early");
    if (!out.empty()) std::memcpy(out.data(), node_.bytes.data() + offset, out.size());
    return {};
  }
  Result<bool> try_lock(LockKind kind) override {
    if (node_.writer || (kind == LockKind::kExclusive && node_.readers > 0)) return false;
    if (kind == LockKind::kShared) ++node_.readers;
    if (kind == LockKind::kExclusive) node_.writer = true;
    held_ = kind;
    return true;
  }
  Status make_private() override { return {}; }

 private:
  MemoryFiles::Node& node_;
  const std::string path_;
  std::optional<LockKind> held_;
};

MemoryFiles::MemoryFiles() {
  add(true);
}

MemoryFiles::NodeId MemoryFiles::add(bool is_directory) {
  nodes_.push_back(std::make_unique<Node>());
  nodes_.back()->is_directory = is_directory;
  return nodes_.size() - 1;
}

std::optional<MemoryFiles::NodeId> MemoryFiles::find(const std::string& path) const {
  NodeId node = 0;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at + 1), path.size());
    const auto entry = nodes_[node]->entries.find(path.substr(at + 1, end - at - 1));
    if (entry == nodes_[node]->entries.end()) return std::nullopt;
    node = entry->second;
    at = end;
  }
  return node;
}

Status MemoryFiles::check(Op op, const std::string& path) const {
  if (!fault) return {};
  if (std::optional<Error> error = fault(op, path)) return tl::unexpected(std::move(*error));
  return {};
}

std::vector<std::byte>& MemoryFiles::content(const std::string& path) {
  return nodes_[find(path).value()]->bytes;
}

Result<std::unique_ptr<OutputFile>> MemoryFiles::create(const std::string& path) {
  if (Status ok = check(Op::kCreate, path); !ok) return tl::unexpected(ok.error());
  const auto folder = find(parent_of(path));
  if (!folder) return missing(parent_of(path));
  if (find(path)) return fail(ErrorCode::kFailed, path + " is there already");
  const NodeId node = add(false);
  nodes_[*folder]->entries[name_in(path)] = node;
  log({{Op::kCreate, path, ""}, *folder, node, 0});
  return std::make_unique<MemoryOutput>(*this, path, node);
}

Result<std::unique_ptr<OutputFile>> MemoryFiles::create_private(const std::string& path) {
  return create(path);
}

Result<EntryKind> MemoryFiles::kind_of(const std::string& path) {
  const auto node = find(path);
  if (!node) return EntryKind::kNone;
  return nodes_[*node]->is_directory ? EntryKind::kFolder : EntryKind::kFile;
}

Result<std::unique_ptr<InputFile>> MemoryFiles::open(const std::string& path) {
  if (Status ok = check(Op::kOpen, path); !ok) return tl::unexpected(ok.error());
  const auto node = find(path);
  if (!node) return missing(path);
  if (nodes_[*node]->is_directory) return fail(ErrorCode::kData, path + " isn't a file");
  return std::make_unique<MemoryInput>(*nodes_[*node], path);
}

Status MemoryFiles::make_directory(const std::string& path) {
  if (Status ok = check(Op::kMakeDirectory, path); !ok) return ok;
  const auto folder = find(parent_of(path));
  if (!folder) return missing(parent_of(path));
  if (find(path)) return {};
  const NodeId node = add(true);
  nodes_[*folder]->entries[name_in(path)] = node;
  log({{Op::kMakeDirectory, path, ""}, *folder, node, 0});
  return {};
}

Result<std::vector<std::string>> MemoryFiles::list(const std::string& path) {
  const auto node = find(path);
  if (!node || !nodes_[*node]->is_directory) return missing(path);
  std::vector<std::string> names;
  for (const auto& [name, entry] : nodes_[*node]->entries) names.push_back(name);
  return names;
}

Status MemoryFiles::rename(const std::string& from, const std::string& to) {
  if (find(to)) return fail(ErrorCode::kFailed, to + " is there already");
  return replace(from, to);
}

Status MemoryFiles::replace(const std::string& from, const std::string& to) {
  if (Status ok = check(Op::kRename, from); !ok) return ok;
  const auto folder = find(parent_of(from));
  const auto node = find(from);
  if (!folder || !node) return missing(from);
  nodes_[*folder]->entries.erase(name_in(from));
  nodes_[*folder]->entries[name_in(to)] = *node;
  log({{Op::kRename, from, to}, *folder, *node, 0});
  return {};
}

Status MemoryFiles::remove_file(const std::string& path) {
  if (Status ok = check(Op::kRemove, path); !ok) return ok;
  const auto folder = find(parent_of(path));
  if (!folder || !find(path)) return missing(path);
  nodes_[*folder]->entries.erase(name_in(path));
  log({{Op::kRemove, path, ""}, *folder, 0, 0});
  return {};
}

Status MemoryFiles::remove_directory(const std::string& path) {
  const auto node = find(path);
  if (node && !nodes_[*node]->entries.empty()) return fail(ErrorCode::kFailed, path + " isn't empty");
  return remove_file(path);
}

Status MemoryFiles::sync_directory(const std::string& path) {
  if (Status ok = check(Op::kSyncDirectory, path); !ok) return ok;
  const auto node = find(path);
  if (!node) return missing(path);
  if (!lies || !lies(Op::kSyncDirectory, path)) log({{Op::kSyncDirectory, path, ""}, *node, 0, 0});
  return {};
}

Result<std::string> MemoryFiles::follow_links(const std::string& path) {
  return path;
}

std::uint64_t MemoryFiles::fingerprint(const std::string& folder) const {
  const auto text = [](const std::string& name) { return checksum_of(std::as_bytes(std::span(name))); };
  const std::function<std::uint64_t(NodeId)> of = [&](NodeId node) {
    std::vector<std::uint64_t> parts = {checksum_of(nodes_[node]->bytes)};
    for (const auto& [name, child] : nodes_[node]->entries) parts.insert(parts.end(), {text(name), of(child)});
    return checksum_of(parts);
  };
  const auto node = find(folder);
  return node ? of(*node) : 0;
}

// Chooses what a crash leaves of the unsynced bytes: none of them, all, a part that ends anywhere, zeros for all, or
// some pieces with zeros between them.
void MemoryFiles::leave(std::vector<std::byte>& bytes, const Node& from, std::size_t durable, std::size_t written,
                        Random& random) {
  constexpr std::size_t kPiece = 64;
  const std::size_t rest = written - durable;
  enum Fate { kNothing, kAll, kZeros, kTorn, kPieces };
  static constexpr Fate kFates[] = {kNothing, kAll, kZeros, kTorn, kTorn, kPieces, kPieces, kPieces};
  const Fate fate = rest == 0 ? kNothing : kFates[random.below(std::size(kFates))];
  const std::size_t length = durable + (fate == kNothing ? 0 : fate == kTorn ? random.below(rest + 1) : rest);
  const auto at = [](auto& in, std::size_t i) { return in.begin() + static_cast<std::ptrdiff_t>(i); };
  bytes.assign(from.bytes.begin(), at(from.bytes, length));
  for (std::size_t piece = durable; piece < length && (fate == kZeros || fate == kPieces); piece += kPiece)
    if (fate == kZeros || random.below(2) == 0)
      std::fill(at(bytes, piece), at(bytes, std::min(piece + kPiece, length)), std::byte{0});
}

void MemoryFiles::assume_durable() {
  log_.clear();
  std::vector<bool> is_there(nodes_.size(), false);
  const std::function<void(NodeId)> mark = [&](NodeId node) {
    is_there[node] = true;
    for (const auto& [name, child] : nodes_[node]->entries) mark(child);
  };
  mark(0);
  for (NodeId node = 0; node < nodes_.size(); ++node)
    if (!is_there[node]) *nodes_[node] = Node();
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    for (const auto& [name, child] : nodes_[node]->entries) log({{Op::kCreate, "/" + name, ""}, node, child, 0});
    if (!nodes_[node]->is_directory) log({{Op::kAppend, "", ""}, node, 0, nodes_[node]->bytes.size()});
  }
  for (NodeId node = 0; node < nodes_.size(); ++node)
    log({{nodes_[node]->is_directory ? Op::kSyncDirectory : Op::kSync, "", ""}, node, 0, 0});
}

void MemoryFiles::put_off(std::size_t operation, std::size_t later) {
  const auto at = [this](std::size_t i) { return log_.begin() + static_cast<std::ptrdiff_t>(i); };
  std::rotate(at(operation), at(operation + 1), at(later + 1));
}

std::unique_ptr<MemoryFiles> MemoryFiles::after_crash(std::size_t operations, Random& random) const {
  auto left = std::make_unique<MemoryFiles>();
  while (left->nodes_.size() < nodes_.size()) left->add(nodes_[left->nodes_.size()]->is_directory);
  // For each node, the index of its last sync. The operations on this node before that sync are durable.
  std::vector<std::size_t> synced(nodes_.size(), 0);
  for (std::size_t i = 0; i < operations; ++i)
    if (log_[i].done.op == Op::kSync || log_[i].done.op == Op::kSyncDirectory) synced[log_[i].node] = i;
  std::vector<std::size_t> durable(nodes_.size(), 0);  // bytes
  std::vector<std::size_t> written(nodes_.size(), 0);
  for (std::size_t i = 0; i < operations; ++i) {
    const Logged& entry = log_[i];
    const bool is_durable = i < synced[entry.node];
    auto& entries = left->nodes_[entry.node]->entries;
    switch (entry.done.op) {
      case Op::kAppend:
        written[entry.node] += entry.bytes;
        if (is_durable) durable[entry.node] = written[entry.node];
        break;
      case Op::kCreate:
      case Op::kMakeDirectory:
        if (is_durable || random.below(2) == 0) entries[name_in(entry.done.path)] = entry.child;
        break;
      case Op::kRename:
        if (!is_durable && random.below(2) == 0) break;
        entries.erase(name_in(entry.done.path));
        entries[name_in(entry.done.to)] = entry.child;
        break;
      case Op::kRemove:
        if (is_durable || random.below(2) == 0) entries.erase(name_in(entry.done.path));
        break;
      default:
        break;
    }
  }
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node]->is_directory || written[node] == 0) continue;
    leave(left->nodes_[node]->bytes, *nodes_[node], durable[node], written[node], random);
  }
  return left;
}

}  // namespace disttrain::checkpoint
