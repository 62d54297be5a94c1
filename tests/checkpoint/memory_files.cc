#include "tests/checkpoint/memory_files.h"

#include <algorithm>
#include <cstring>

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
    files_.log({MemoryFiles::Op::kAppend, node_, "", "", 0, bytes.size()});
    return {};
  }
  Status sync() override {
    if (Status ok = files_.check(MemoryFiles::Op::kSync, path_); !ok) return ok;
    if (!files_.lies || !files_.lies(MemoryFiles::Op::kSync, path_))
      files_.log({MemoryFiles::Op::kSync, node_, "", "", 0, 0});
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
  log({Op::kCreate, *folder, name_in(path), "", node, 0});
  return std::make_unique<MemoryOutput>(*this, path, node);
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
  log({Op::kMakeDirectory, *folder, name_in(path), "", node, 0});
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
  if (Status ok = check(Op::kRename, from); !ok) return ok;
  const auto folder = find(parent_of(from));
  const auto node = find(from);
  if (!folder || !node) return missing(from);
  if (find(to)) return fail(ErrorCode::kFailed, to + " is there already");
  nodes_[*folder]->entries.erase(name_in(from));
  nodes_[*folder]->entries[name_in(to)] = *node;
  log({Op::kRename, *folder, name_in(from), name_in(to), *node, 0});
  return {};
}

Status MemoryFiles::remove_file(const std::string& path) {
  if (Status ok = check(Op::kRemove, path); !ok) return ok;
  const auto folder = find(parent_of(path));
  if (!folder || !find(path)) return missing(path);
  nodes_[*folder]->entries.erase(name_in(path));
  log({Op::kRemove, *folder, name_in(path), "", 0, 0});
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
  if (!lies || !lies(Op::kSyncDirectory, path)) log({Op::kSyncDirectory, *node, "", "", 0, 0});
  return {};
}

std::string MemoryFiles::fingerprint() const {
  std::string text;
  const std::function<void(NodeId)> append = [&](NodeId node) {
    const auto& bytes = nodes_[node]->bytes;
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (const auto& [name, child] : nodes_[node]->entries) {
      text += "/" + name + "\n";
      append(child);
    }
    text += "\n..\n";
  };
  append(0);
  return text;
}

void MemoryFiles::assume_durable() {
  log_.clear();
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    for (const auto& [name, child] : nodes_[node]->entries) log({Op::kCreate, node, name, "", child, 0});
    if (!nodes_[node]->is_directory) log({Op::kAppend, node, "", "", 0, nodes_[node]->bytes.size()});
  }
  for (NodeId node = 0; node < nodes_.size(); ++node)
    log({nodes_[node]->is_directory ? Op::kSyncDirectory : Op::kSync, node, "", "", 0, 0});
}

std::unique_ptr<MemoryFiles> MemoryFiles::after_crash(std::size_t operations, Random& random) const {
  auto left = std::make_unique<MemoryFiles>();
  while (left->nodes_.size() < nodes_.size()) left->add(nodes_[left->nodes_.size()]->is_directory);
  std::vector<std::size_t> synced(nodes_.size(), 0);  // operations before this one are durable, of each node
  for (std::size_t i = 0; i < operations; ++i)
    if (log_[i].op == Op::kSync || log_[i].op == Op::kSyncDirectory) synced[log_[i].node] = i;
  std::vector<std::size_t> durable(nodes_.size(), 0);  // bytes
  std::vector<std::size_t> written(nodes_.size(), 0);
  for (std::size_t i = 0; i < operations; ++i) {
    const Logged& entry = log_[i];
    const bool is_durable = i < synced[entry.node];
    auto& entries = left->nodes_[entry.node]->entries;
    switch (entry.op) {
      case Op::kAppend:
        written[entry.node] += entry.bytes;
        if (is_durable) durable[entry.node] = written[entry.node];
        break;
      case Op::kCreate:
      case Op::kMakeDirectory:
        if (is_durable || random.below(2) == 0) entries[entry.name] = entry.child;
        break;
      case Op::kRename:
        if (!is_durable && random.below(2) == 0) break;
        entries.erase(entry.name);
        entries[entry.to] = entry.child;
        break;
      case Op::kRemove:
        if (is_durable || random.below(2) == 0) entries.erase(entry.name);
        break;
      default:
        break;
    }
  }
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node]->is_directory || written[node] == 0) continue;
    // Of what wasn't synced: nothing, all, a part, or room that was never filled.
    std::size_t length = durable[node];
    const std::size_t rest = written[node] - durable[node];
    const std::uint64_t fate = rest == 0 ? 0 : random.below(4);
    if (fate == 1 || fate == 3) length += rest;
    if (fate == 2) length += random.below(rest + 1);
    std::vector<std::byte>& bytes = left->nodes_[node]->bytes;
    bytes.assign(nodes_[node]->bytes.begin(), nodes_[node]->bytes.begin() + static_cast<std::ptrdiff_t>(length));
    if (fate == 3) std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(durable[node]), bytes.end(), std::byte{0});
  }
  return left;
}

}  // namespace disttrain::checkpoint
