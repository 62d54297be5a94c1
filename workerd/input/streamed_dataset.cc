#include "workerd/input/streamed_dataset.h"

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

#include "common/check.h"
#include "workerd/input/encode_images.h"
#include "workerd/input/file_reader.h"
#include "workerd/input/record_stream.h"
#include "workerd/input/rows.h"
#include "workerd/input/typed_values.h"

namespace disttrain::input {

// What a thread needs while it makes a batch; it keeps its memory.
struct StreamedDataset::Scratch {
  std::vector<std::byte> bytes;
  std::vector<RecordPlace> places;
  Table table;
  EncodedRows encoded;
  ImageEncoder images;
  std::vector<std::uint32_t> order;  // of the indices, sorted by their records
  std::vector<Row> rows;
  std::vector<std::size_t> blocks;
  std::vector<BlockOfRows> held;
};

StreamedDataset::StreamedDataset(std::unique_ptr<RecordIndex> index, std::unique_ptr<RecordFormat> format,
                                 StreamedOptions options)
    : index_(std::move(index)),
      format_(std::move(format)),
      options_(std::move(options)),
      encoder_(options_.columns, *options_.fitted),
      files_(*index_),
      blocks_(options_.memory) {
  DISTTRAIN_CHECK_LT(options_.begin, options_.end);
  DISTTRAIN_CHECK_LE(options_.end, index_->records());
  DISTTRAIN_CHECK(!options_.keeps_blocks || (!options_.blocks.empty() && !encoder_.has_pixels()));
  if (encoder_.has_pixels())
    columns_.push_back(
        {.name = "inputs", .dtype = DType::kUint8, .elements = encoder_.inputs(), .smallest = 0, .largest = 255});
  else if (encoder_.inputs() > 0)
    columns_.push_back({.name = "inputs", .elements = encoder_.inputs()});
  if (encoder_.categories() > 0) {
    const std::vector<std::uint32_t> sizes = category_sizes(options_.columns, *options_.fitted);
    columns_.push_back({.name = "categories",
                        .dtype = DType::kInt32,
                        .elements = encoder_.categories(),
                        .smallest = 0,
                        .largest = std::int64_t{*std::max_element(sizes.begin(), sizes.end())} - 1});
  }
  for (std::size_t i = 0; i < options_.columns.size(); ++i) {
    if (options_.columns[i].kind != ColumnKind::kLabel) continue;
    const FittedColumn& label = options_.fitted->columns[i];
    label_names_ = label.vocabulary;
    if (!encoder_.has_classes()) {
      columns_.push_back({.name = "labels"});
      continue;
    }
    const bool are_words = !label.vocabulary.empty();
    columns_.push_back({.name = "labels",
                        .dtype = DType::kInt64,
                        .are_classes = true,
                        .smallest = 0,
                        .largest = are_words ? static_cast<std::int64_t>(label.vocabulary.size()) - 1
                                             : static_cast<std::int64_t>(label.label.largest)});
  }
}

StreamedDataset::~StreamedDataset() = default;

std::vector<std::uint64_t> StreamedDataset::blocks() const {
  std::vector<std::uint64_t> begins;
  for (const std::uint64_t begin : options_.blocks)
    if (begin > options_.begin && begin < options_.end) begins.push_back(begin - options_.begin);
  if (!options_.blocks.empty()) begins.insert(begins.begin(), 0);
  return begins;
}

std::string StreamedDataset::place_of(std::uint64_t record) const {
  const IndexedFile& file = index_->files()[index_->file_of(record)];
  return "data file \"" + file.path + "\", record " + std::to_string(record - file.first_record);
}

std::unique_ptr<StreamedDataset::Scratch> StreamedDataset::take_scratch() const {
  const std::lock_guard lock(mutex_);
  if (scratches_.empty()) return std::make_unique<Scratch>();
  std::unique_ptr<Scratch> scratch = std::move(scratches_.back());
  scratches_.pop_back();
  return scratch;
}

Status StreamedDataset::gather(std::span<const std::uint64_t> indices, std::span<const ColumnOut> columns,
                               const Draw& draw) const {
  for (const std::uint64_t index : indices) DISTTRAIN_CHECK_LT(index, records());
  std::unique_ptr<Scratch> scratch = take_scratch();
  Status ok = options_.keeps_blocks ? find_in_blocks(indices, *scratch) : find_records(indices, draw, *scratch);
  const StageTimer timer(figures_.batch_ns);
  for (std::size_t c = 0; ok && c < columns.size(); ++c) {
    const ColumnOut& to = columns[c];
    const std::string& name = columns_[c].name;
    DISTTRAIN_CHECK_EQ(to.out.size(), indices.size() * element_count(to.as) * size_of(to.as.dtype));
    if (name == "labels" && encoder_.has_classes()) ok = check_limit(indices, scratch->rows, to.as);
    if (!ok) break;
    const std::uint64_t width = element_count(to.as);
    with_type(to.as.dtype, to.out, [&]<typename T>(std::span<T> out) {
      for (std::size_t i = 0; i < indices.size(); ++i) {
        const Row& row = scratch->rows[i];
        const std::uint64_t one[] = {row.row};
        T* const at = out.data() + i * width;
        if (name == "inputs" && encoder_.has_pixels()) {
          gather_rows(row.rows->pixels.data(), width, one, options_.scale, at);
        } else if (name == "inputs") {
          gather_rows(row.rows->inputs.data(), width, one, 1.0, at);
        } else if (name == "categories") {
          gather_rows(row.rows->categories.data(), width, one, 1.0, at);
        } else if (!encoder_.has_classes()) {
          *at = static_cast<T>(row.rows->targets[row.row]);
        } else if (width == 1) {
          *at = static_cast<T>(row.rows->classes[row.row]);
        } else {
          std::fill_n(at, width, T(0));
          at[row.rows->classes[row.row]] = T(1);
        }
      }
    });
  }
  scratch->held.clear();
  const std::lock_guard lock(mutex_);
  scratches_.push_back(std::move(scratch));
  return ok;
}

// The labels of the whole set weren't checked when it was opened.
Status StreamedDataset::check_limit(std::span<const std::uint64_t> indices, const std::vector<Row>& rows,
                                    const ColumnSpec& as) const {
  const bool is_float = as.dtype == DType::kFloat32 || as.dtype == DType::kFloat64;
  const std::uint64_t limit = !is_float ? as.limit : element_count(as) > 1 ? element_count(as) : 0;
  if (limit == 0) return {};
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::int64_t label = rows[i].rows->classes[rows[i].row];
    if (static_cast<std::uint64_t>(label) >= limit)
      return fail(ErrorCode::kData, place_of(options_.begin + indices[i]) + ": the label is " + std::to_string(label) +
                                        ", but the model has " + std::to_string(limit) +
                                        " outputs, for labels from 0 to " + std::to_string(limit - 1) +
                                        ": correct the record, or change the model");
  }
  return {};
}

Status StreamedDataset::find_records(std::span<const std::uint64_t> indices, const Draw& draw, Scratch& scratch) const {
  scratch.encoded.clear();
  scratch.order.resize(indices.size());
  std::iota(scratch.order.begin(), scratch.order.end(), 0u);
  std::sort(scratch.order.begin(), scratch.order.end(),
            [&indices](std::uint32_t a, std::uint32_t b) { return indices[a] < indices[b]; });
  scratch.rows.resize(indices.size());
  for (std::size_t i = 0; i < scratch.order.size(); ++i) scratch.rows[scratch.order[i]] = {&scratch.encoded, i};
  for (std::size_t i = 0; i < scratch.order.size();) {
    const std::uint64_t first = options_.begin + indices[scratch.order[i]];
    const IndexedFile& file = index_->files()[index_->file_of(first)];
    const std::uint64_t most = std::min(scratch.order.size() - i, file.first_record + file.records - first);
    std::uint64_t count = 1;
    while (count < most && options_.begin + indices[scratch.order[i + count]] == first + count) ++count;
    if (Status ok = decode(first, count, draw, scratch, scratch.encoded); !ok) return ok;
    i += count;
  }
  return {};
}

std::size_t StreamedDataset::block_of(std::uint64_t record) const {
  const auto after = std::upper_bound(options_.blocks.begin(), options_.blocks.end(), record);
  return static_cast<std::size_t>(after - options_.blocks.begin()) - 1;
}

// Each input thread first makes those missing blocks that no other thread makes. Then it waits for the others.
Status StreamedDataset::find_in_blocks(std::span<const std::uint64_t> indices, Scratch& scratch) const {
  std::vector<std::size_t>& wanted = scratch.blocks;
  wanted.clear();
  for (const std::uint64_t index : indices) wanted.push_back(block_of(options_.begin + index));
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  scratch.held.assign(wanted.size(), nullptr);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!blocks_.claim(wanted[i])) continue;
    Result<BlockOfRows> made = make_block(wanted[i], scratch);
    if (made) scratch.held[i] = *made;
    blocks_.put(wanted[i], std::move(made));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    while (scratch.held[i] == nullptr) {
      if (std::optional<Result<BlockOfRows>> found = blocks_.get(wanted[i])) {
        if (!*found) return tl::unexpected(found->error());
        scratch.held[i] = **found;
      } else if (blocks_.claim(wanted[i])) {  // it was dropped again meanwhile
        Result<BlockOfRows> made = make_block(wanted[i], scratch);
        if (made) scratch.held[i] = *made;
        blocks_.put(wanted[i], std::move(made));
      }
    }
  }
  scratch.rows.resize(indices.size());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::uint64_t record = options_.begin + indices[i];
    const std::size_t block = block_of(record);
    const auto at = std::lower_bound(wanted.begin(), wanted.end(), block) - wanted.begin();
    scratch.rows[i] = {scratch.held[static_cast<std::size_t>(at)].get(), record - options_.blocks[block]};
  }
  return {};
}

Result<BlockOfRows> StreamedDataset::make_block(std::size_t number, Scratch& scratch) const {
  const std::uint64_t first = options_.blocks[number];
  const std::uint64_t end = number + 1 < options_.blocks.size() ? options_.blocks[number + 1] : index_->records();
  auto rows = std::make_shared<EncodedRows>();
  const bool is_packed = index_->files()[index_->file_of(first)].is_packed;
  const Status ok =
      is_packed ? decode_packed(first, end - first, scratch, *rows) : decode(first, end - first, {}, scratch, *rows);
  if (!ok) return tl::unexpected(ok.error());
  return rows;
}

Status StreamedDataset::decode(std::uint64_t first, std::uint64_t count, const Draw& draw, Scratch& scratch,
                               EncodedRows& rows) const {
  const IndexedFile& file = index_->files()[index_->file_of(first)];
  const std::uint64_t begin = index_->place(first).offset;
  const IndexedPlace& last = index_->place(first + count - 1);
  const std::uint64_t end = last.offset + last.bytes + format_->tail_bytes();
  if (last.offset > file.bytes || last.bytes > file.bytes || end < begin || end > file.bytes + format_->tail_bytes())
    return fail(ErrorCode::kData, place_of(first) + ": its index is damaged: remove the index (.disttrain-*.index)");
  // A line at the end of a file may lack its end.
  scratch.bytes.resize(std::min(end, std::max(file.bytes, begin)) - begin);
  {
    const StageTimer timer(figures_.read_ns);
    if (Status ok = files_.read(index_->file_of(first), begin, scratch.bytes); !ok) return ok;
  }
  figures_.bytes_read.fetch_add(scratch.bytes.size(), std::memory_order_relaxed);
  scratch.bytes.resize(end - begin);
  scratch.places.clear();
  for (std::uint64_t i = 0; i < count; ++i) {
    const IndexedPlace& place = index_->place(first + i);
    if (place.offset < begin || place.bytes > end - begin || place.offset + place.bytes > last.offset + last.bytes)
      return fail(ErrorCode::kData,
                  place_of(first + i) + ": its index is damaged: remove the index (.disttrain-*.index)");
    scratch.places.push_back({place.offset - begin, place.bytes});
  }
  const RecordBlock block{.path = file.path,
                          .offset = begin,
                          .first_record = first - file.first_record,
                          .is_last = end >= file.bytes,
                          .bytes = scratch.bytes};
  {
    const StageTimer timer(figures_.decode_ns);
    if (Status ok = format_->decode(block, scratch.places, scratch.table); !ok) return ok;
  }
  const StageTimer timer(figures_.transform_ns);
  return encoder_.encode(scratch.table, [&](std::uint64_t record) { return place_of(first + record); }, rows,
                         {.encoder = &scratch.images, .draw = draw, .first_record = first});
}

// Reads a compressed file from its begin. The records are all those of the file.
Status StreamedDataset::decode_packed(std::uint64_t first, std::uint64_t count, Scratch& scratch,
                                      EncodedRows& rows) const {
  const IndexedFile& file = index_->files()[index_->file_of(first)];
  const Result<std::unique_ptr<FileReader>> reader = FileReader::open(file.path);
  if (!reader) return tl::unexpected(reader.error());
  RecordStream stream(**reader, *format_);
  for (;;) {
    const Result<bool> more = [&] {
      const StageTimer timer(figures_.read_ns);
      return stream.next();
    }();
    if (!more.has_value()) return tl::unexpected(more.error());
    if (!*more) break;
    {
      const StageTimer timer(figures_.decode_ns);
      if (Status ok = format_->decode(stream.block(), stream.records(), scratch.table); !ok) return ok;
    }
    const StageTimer timer(figures_.transform_ns);
    const Status ok = encoder_.encode(
        scratch.table, [&](std::uint64_t record) { return name_of(stream.block(), record); }, rows);
    if (!ok) return ok;
  }
  figures_.bytes_read.fetch_add((*reader)->file_bytes(), std::memory_order_relaxed);
  if (rows.records != count)
    return fail(ErrorCode::kData, file.path + ": was changed while the job uses it: it has " +
                                      std::to_string(rows.records) + " records, expected " + std::to_string(count) +
                                      ": start the job again when the file is complete");
  return {};
}

}  // namespace disttrain::input
