#include "common/checkpoint/shard_file.h"

#include <algorithm>
#include <memory>

#include "common/check.h"
#include "common/checkpoint/checksum.h"
#include "common/checkpoint/chunk_writer.h"
#include "common/checkpoint/safetensors.h"
#include "common/checkpoint/verified_file.h"

namespace disttrain::checkpoint {
namespace {

// Returns the tensors of a shard's file in the order of their bytes. A variable that is completely in this shard keeps
// its name and shape. For a part of a variable, the range of its elements is appended to the name: "w[0:100]".
std::vector<Tensor> tensors_of(const Layout& layout, ShardId shard, std::uint32_t slots) {
  struct Piece {
    SliceEntry slice;
    const VariableEntry* variable;
    bool is_whole;
  };
  const std::vector<VariableEntry> variables = variables_of(layout);
  std::vector<Piece> pieces;
  for (std::size_t v = 0; v < variables.size(); ++v)
    for (const SliceEntry& slice : variables[v].slices)
      if (slice.shard == shard.value)
        pieces.push_back({slice, &variables[v], slice.words == word_count(layout.model.variables[v])});
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.slice.offset < b.slice.offset; });
  std::vector<Tensor> tensors;
  std::uint64_t at = 0;
  for (std::uint32_t array = 0; array <= slots; ++array)
    for (const Piece& piece : pieces) {
      const std::uint64_t words = element_words(*piece.variable);
      const std::uint64_t begin = piece.slice.begin / words;
      const std::uint64_t elements = piece.slice.words / words;
      Tensor tensor;
      tensor.dtype = words == 2 ? DType::kF64 : DType::kF32;
      tensor.name = (array == 0 ? "" : "slot" + std::to_string(array - 1) + "/") + piece.variable->name;
      tensor.shape = piece.variable->shape;
      if (!piece.is_whole) {
        tensor.name += "[" + std::to_string(begin) + ":" + std::to_string(begin + elements) + "]";
        tensor.shape = {elements};
      }
      tensor.begin = at;
      at = tensor.end = at + piece.slice.words * sizeof(float);
      tensors.push_back(std::move(tensor));
    }
  return tensors;
}

// A run of words that is contiguous both in a source file and in the target shard.
struct Run {
  std::uint32_t source = 0;  // shard of the checkpoint
  std::uint64_t source_offset = 0;
  std::uint64_t target_offset = 0;
  std::uint64_t words = 0;
};

void append_overlaps(const std::vector<SliceEntry>& sources, const SliceEntry& wanted, std::vector<Run>& runs) {
  auto source = std::upper_bound(sources.begin(), sources.end(), wanted.begin,
                                 [](std::uint64_t begin, const SliceEntry& slice) { return begin < slice.begin; });
  --source;  // slices begin at 0
  for (std::uint64_t at = wanted.begin; at < wanted.begin + wanted.words; ++source) {
    const std::uint64_t skip = at - source->begin;
    const std::uint64_t count = std::min(source->words - skip, wanted.begin + wanted.words - at);
    runs.push_back({source->shard, source->offset + skip, wanted.offset + (at - wanted.begin), count});
    at += count;
  }
}

Status check_same_variables(const Manifest& manifest, const Layout& target, const std::string& folder) {
  const auto differ = [&folder](const std::string& what) {
    return fail(ErrorCode::kConfig,
                folder + " holds another model: " + what +
                    ": give the job another name or checkpoint.directory, or change the model back");
  };
  if (manifest.variables.size() != target.model.variables.size())
    return differ("it has " + std::to_string(manifest.variables.size()) + " variables, the job has " +
                  std::to_string(target.model.variables.size()));
  for (std::size_t v = 0; v < manifest.variables.size(); ++v) {
    const VariableEntry& had = manifest.variables[v];
    const VariableSpec& want = target.model.variables[v];
    if (had.name != want.name || had.shape != want.shape || had.kind != want.kind || had.dtype != want.dtype)
      return differ("its variable " + std::to_string(v) + " is " + had.name + " " + shape_text(had.shape) + " " +
                    disttrain::to_string(had.dtype) + ", the job's is " + want.name + " " + shape_text(want.shape) +
                    " " + disttrain::to_string(want.dtype));
  }
  return {};
}

}  // namespace

Result<ShardWriter> ShardWriter::reserve(Files& files, const std::string& folder, const Layout& layout, ShardId shard,
                                         std::uint32_t slots, const std::map<std::string, std::string>& metadata) {
  FileEntry entry;
  entry.name = shard_file_name(shard.value, layout.shards);
  const std::uint64_t words = shard_words(layout, shard);
  std::string header = encode_header(tensors_of(layout, shard, slots), metadata);
  entry.data_begin = header.size();
  Result<std::unique_ptr<OutputFile>> file = files.create(folder + "/" + entry.name);
  if (!file) return tl::unexpected(file.error());
  if (Status reserved = (*file)->reserve(header.size() + words * sizeof(float) * (1 + std::uint64_t{slots})); !reserved)
    return tl::unexpected(reserved.error());
  return ShardWriter(std::move(*file), std::move(header), std::move(entry), words, slots);
}

Result<FileEntry> ShardWriter::write(const ShardContent& content, const IsCancelled& is_cancelled) {
  DISTTRAIN_CHECK_EQ(content.parameters.size(), words_);
  DISTTRAIN_CHECK_EQ(content.slots.size(), slots_);
  ChunkWriter writer(*file_, is_cancelled, entry_);
  Status done = writer.write(std::as_bytes(std::span(header_)));
  if (done) done = writer.write(std::as_bytes(content.parameters));
  for (const std::span<const float> slot : content.slots) {
    DISTTRAIN_CHECK_EQ(slot.size(), words_);
    if (done) done = writer.write(std::as_bytes(slot));
  }
  if (done) done = writer.finish();
  if (!done) return tl::unexpected(done.error());
  return entry_;
}

Result<FileEntry> write_shard(Files& files, const std::string& folder, const Layout& layout, ShardId shard,
                              const ShardContent& content, const std::map<std::string, std::string>& metadata,
                              const IsCancelled& is_cancelled) {
  Result<ShardWriter> writer =
      ShardWriter::reserve(files, folder, layout, shard, static_cast<std::uint32_t>(content.slots.size()), metadata);
  if (!writer) return tl::unexpected(writer.error());
  return writer->write(content, is_cancelled);
}

Status read_shard(Files& files, const std::string& folder, const Manifest& manifest, const Layout& target,
                  ShardId shard, std::span<float> parameters, std::span<const std::span<float>> slots,
                  const IsCancelled& is_cancelled) {
  if (Status same = check_same_variables(manifest, target, folder); !same) return same;
  DISTTRAIN_CHECK_EQ(parameters.size(), shard_words(target, shard));
  DISTTRAIN_CHECK_LE(slots.size(), manifest.slots);
  const std::vector<VariableEntry> wanted = variables_of(target);
  std::vector<Run> runs;
  for (std::size_t v = 0; v < wanted.size(); ++v)
    for (const SliceEntry& slice : wanted[v].slices)
      if (slice.shard == shard.value) append_overlaps(manifest.variables[v].slices, slice, runs);
  // Read each file from its beginning to its end. Merge runs that are adjacent both in the file and in the shard.
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return std::tie(a.source, a.source_offset) < std::tie(b.source, b.source_offset);
  });
  std::vector<Run> joined;
  for (const Run& run : runs) {
    Run* last = joined.empty() ? nullptr : &joined.back();
    if (last != nullptr && last->source == run.source && last->source_offset + last->words == run.source_offset &&
        last->target_offset + last->words == run.target_offset)
      last->words += run.words;
    else
      joined.push_back(run);
  }
  for (std::uint32_t source = 0; source < manifest.shards.size(); ++source) {
    const auto is_of_source = [source](const Run& run) { return run.source == source; };
    if (std::none_of(joined.begin(), joined.end(), is_of_source)) continue;
    const FileEntry& entry = manifest.files[source];
    Result<VerifiedFile> file = VerifiedFile::open(files, folder, entry, is_cancelled);
    if (!file) return tl::unexpected(file.error());
    for (std::size_t array = 0; array <= slots.size(); ++array) {
      const std::span<float> into = array == 0 ? parameters : slots[array - 1];
      for (const Run& run : joined) {
        if (run.source != source) continue;
        const std::uint64_t word = array * manifest.shards[source].words + run.source_offset;
        const auto out = std::as_writable_bytes(into.subspan(run.target_offset, run.words));
        if (Status read = file->read(entry.data_begin + word * sizeof(float), out); !read) return read;
      }
    }
  }
  return {};
}

Status verify_file(Files& files, const std::string& folder, const FileEntry& entry, const IsCancelled& is_cancelled) {
  Result<VerifiedFile> file = VerifiedFile::open(files, folder, entry);
  if (!file) return tl::unexpected(file.error());
  if (checksum_of(entry.chunks) != entry.checksum)
    return fail(ErrorCode::kData, folder + "/" + kManifestName + ": the checksums of " + entry.name +
                                      " don't agree with each other: the manifest is damaged");
  std::vector<std::byte> chunk(std::min(kChunkBytes, entry.bytes));
  for (std::uint64_t at = 0; at < entry.bytes; at += kChunkBytes) {
    if (is_cancelled && is_cancelled()) return fail(ErrorCode::kTemporary, folder + ": verifying was cancelled");
    const std::uint64_t size = std::min(kChunkBytes, entry.bytes - at);
    if (Status read = file->read(at, MutableBytes(chunk).first(size)); !read) return read;
  }
  return {};
}

Status verify_files(Files& files, const std::string& folder, const Manifest& manifest,
                    const IsCancelled& is_cancelled) {
  for (const FileEntry& entry : manifest.files)
    if (Status verified = verify_file(files, folder, entry, is_cancelled); !verified) return verified;
  return {};
}

}  // namespace disttrain::checkpoint
