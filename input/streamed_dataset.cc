#include "input/streamed_dataset.h"

#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "common/check.h"
#include "common/config/columns.h"
#include "common/os/crash_stack.h"
#include "input/integer_bounds.h"
#include "input/read_parallel.h"
#include "input/rows.h"
#include "input/typed_values.h"

namespace disttrain::input {

namespace {

constexpr std::uint32_t kNoPlace = 0xFFFFFFFF;

}  // namespace

// What a thread needs while it makes a batch; it keeps its memory.
struct StreamedDataset::Scratch {
  explicit Scratch(std::unique_ptr<RecordReader> its_reader) : reader(std::move(its_reader)) {}

  const std::unique_ptr<RecordReader> reader;
  EncodedRows encoded;
  std::vector<std::uint32_t> order;  // the places of the indices when they are sorted by their records
  std::vector<Row> rows;
  std::vector<const void*> pointers;  // to the rows of a column
  std::vector<std::size_t> blocks;    // those of the batch
  std::vector<std::uint32_t> places;  // of each block of the source: its place in `blocks`, or kNoPlace
  std::vector<BlockOfRows> held;
};

StreamedDataset::StreamedDataset(std::unique_ptr<RecordSource> source, StreamedOptions options)
    : source_(std::move(source)),
      options_(std::move(options)),
      encoder_(options_.columns, *options_.fitted, options_.missing, options_.target_taker,
               options_.takes_probabilities),
      blocks_(options_.memory),
      unknown_(encoder_.unknown_names().size()) {
  DISTTRAIN_CHECK_LT(options_.begin, options_.end);
  DISTTRAIN_CHECK_LE(options_.end, source_->records());
  DISTTRAIN_CHECK(!options_.keeps_blocks || (!options_.blocks.empty() && !encoder_.has_pixels()));
  const Parts parts = parts_of(options_.columns, *options_.fitted);
  if (encoder_.has_pixels())
    columns_.push_back({.name = "inputs",
                        .dtype = DType::kUint8,
                        .elements = encoder_.inputs(),
                        .smallest = 0,
                        .largest = 255,
                        .parts = parts.inputs});
  else if (encoder_.inputs() > 0)
    columns_.push_back({.name = "inputs", .elements = encoder_.inputs(), .parts = parts.inputs});
  if (encoder_.categories() > 0) {
    const std::vector<std::uint32_t> sizes = category_sizes(with_vocabularies(options_.columns, *options_.fitted), 1);
    columns_.push_back({.name = "categories",
                        .dtype = DType::kInt32,
                        .elements = encoder_.categories(),
                        .smallest = 0,
                        .largest = std::int64_t{*std::max_element(sizes.begin(), sizes.end())} - 1,
                        .parts = parts.categories});
  }
  first_tokens_ = columns_.size();
  for (const TokenArray& array : encoder_.tokens()) columns_.push_back(column_of(array));
  add_labels(parts);
  if (encoder_.has_weights()) columns_.push_back({.name = "weights", .parts = parts.weights});
}

void StreamedDataset::add_labels(const Parts& parts) {
  for (std::size_t i = 0; i < options_.columns.size(); ++i) {
    if (options_.columns[i].kind != ColumnKind::kLabel) continue;
    const FittedColumn& label = options_.fitted->columns[i];
    label_names_ = label.vocabulary;
    if (!encoder_.has_whole_labels()) {
      columns_.push_back({.name = "labels", .parts = parts.labels});
      continue;
    }
    const bool are_words = !label.vocabulary.empty();
    columns_.push_back({.name = "labels",
                        .dtype = DType::kInt64,
                        .are_classes = are_words || label.label.are_classes(),
                        .smallest = are_words ? 0 : static_cast<std::int64_t>(label.label.smallest),
                        .largest = are_words ? static_cast<std::int64_t>(label.vocabulary.size()) - 1
                                             : static_cast<std::int64_t>(label.label.largest),
                        .parts = parts.labels});
  }
}

StreamedDataset::~StreamedDataset() = default;

// Other tokenizers make other records of the same files, and other lengths make another order.
std::uint64_t StreamedDataset::hash() const {
  std::uint64_t hash = source_->hash();
  for (const FittedColumn& column : options_.fitted->columns)
    if (column.tokenizer != nullptr)
      hash = XXH3_64bits_withSeed(&column.tokenizer_hash, sizeof(column.tokenizer_hash), hash);
  const std::span<const std::uint32_t> lengths = options_.lengths;
  return lengths.empty() ? hash : XXH3_64bits_withSeed(lengths.data(), lengths.size_bytes(), hash);
}

std::vector<std::uint64_t> StreamedDataset::blocks() const {
  std::vector<std::uint64_t> begins;
  for (const std::uint64_t begin : options_.blocks)
    if (begin > options_.begin && begin < options_.end) begins.push_back(begin - options_.begin);
  if (!options_.blocks.empty()) begins.insert(begins.begin(), 0);
  return begins;
}

std::unique_ptr<StreamedDataset::Scratch> StreamedDataset::take_scratch() const {
  const std::lock_guard lock(mutex_);
  if (scratches_.empty()) return std::make_unique<Scratch>(source_->make_reader(encoder_, figures_));
  std::unique_ptr<Scratch> scratch = std::move(scratches_.back());
  scratches_.pop_back();
  return scratch;
}

void StreamedDataset::give_back(std::unique_ptr<Scratch> scratch) const {
  scratch->held.clear();
  const std::lock_guard lock(mutex_);
  scratches_.push_back(std::move(scratch));
}

Status StreamedDataset::gather(std::span<const std::uint64_t> indices, std::span<const ColumnOut> columns,
                               const Draw& draw) const {
  for (const std::uint64_t index : indices) DISTTRAIN_CHECK_LT(index, records());
  std::unique_ptr<Scratch> scratch = take_scratch();
  Status ok = options_.keeps_blocks ? find_in_blocks(indices, *scratch) : find_records(indices, draw, *scratch);
  const StageTimer timer(figures_.batch_ns);
  if (ok && !draw.is_training) note_unknown(indices, scratch->rows);
  for (std::size_t c = 0; ok && c < columns.size(); ++c) {
    const ColumnOut& to = columns[c];
    DISTTRAIN_CHECK_LT(to.from.array, columns_.size());
    const std::string& name = columns_[to.from.array].name;
    if (to.strings == nullptr)
      DISTTRAIN_CHECK_EQ(to.out.size(), indices.size() * element_count(to.as) * size_of(to.as.dtype));
    if (name == "labels" && encoder_.has_whole_labels()) ok = check_limit(indices, scratch->rows, to.as);
    if (!ok) break;
    if (to.from.array >= first_tokens_ && to.from.array - first_tokens_ < encoder_.tokens().size())
      copy_tokens(to, scratch->rows);
    else
      with_type(to.as.dtype, to.out, [&]<typename T>(std::span<T> out) { copy_column<T>(to, *scratch, out); });
  }
  give_back(std::move(scratch));
  return ok;
}

template <typename T>
void StreamedDataset::copy_column(const ColumnOut& to, Scratch& scratch, std::span<T> out) const {
  const std::uint64_t width = element_count(to.as);
  const DatasetColumn& array = columns_[to.from.array];
  const std::string& name = array.name;
  const std::vector<Row>& rows = scratch.rows;
  const auto copy = [&]<typename From>(LargeArray<From> EncodedRows::*values, double scale) {
    std::vector<const void*>& pointers = scratch.pointers;
    pointers.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      pointers[i] = (rows[i].rows->*values).data() + rows[i].row * array.elements + to.from.first;
    gather_rows<From>(pointers, width, scale, out.data());
  };
  if (name == "inputs" && encoder_.has_pixels()) {
    copy(&EncodedRows::pixels, options_.scale);
  } else if (name == "inputs") {
    copy(&EncodedRows::inputs, 1.0);
  } else if (name == "categories") {
    copy(&EncodedRows::categories, 1.0);
  } else if (name == "weights") {
    copy(&EncodedRows::weights, 1.0);
  } else if (!encoder_.has_whole_labels()) {
    copy(&EncodedRows::targets, 1.0);
  } else if (width == 1) {
    copy(&EncodedRows::classes, 1.0);
  } else {
    std::fill(out.begin(), out.end(), T(0));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto label = static_cast<std::uint64_t>(rows[i].rows->classes[rows[i].row]);
      DISTTRAIN_CHECK_LT(label, width);  // check_limit()
      out[i * width + label] = T(1);
    }
  }
}

void StreamedDataset::copy_tokens(const ColumnOut& to, const std::vector<Row>& rows) const {
  const TokenArray& array = encoder_.tokens()[to.from.array - first_tokens_];
  write_tokens(
      array, rows.size(), [&](std::size_t i) { return rows[i].rows->tokens[array.column].row(rows[i].row); }, to);
}

// The labels of the whole set weren't checked when it was opened.
Status StreamedDataset::check_limit(std::span<const std::uint64_t> indices, const std::vector<Row>& rows,
                                    const ColumnSpec& as) const {
  const bool is_float = as.dtype == DType::kFloat32 || as.dtype == DType::kFloat64;
  const std::uint64_t limit = !is_float ? as.limit : element_count(as) > 1 ? element_count(as) : 0;
  if (is_float && limit == 0) return {};
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::int64_t label = rows[i].rows->classes[rows[i].row];
    if (is_float ? static_cast<std::uint64_t>(label) < limit : takes(as, label)) continue;
    const IntegerBounds bounds = bounds_of(as);
    const std::string expected =
        is_float || as.limit > 0 ? " has " + std::to_string(limit) + " outputs, for labels from 0 to " +
                                       std::to_string(is_float ? static_cast<std::int64_t>(limit) - 1 : bounds.largest)
                                 : "'s column \"" + as.name + "\" takes " + std::to_string(bounds.smallest) + " to " +
                                       std::to_string(bounds.largest);
    return fail(ErrorCode::kData, source_->place_of(options_.begin + indices[i]) + ": the label is " +
                                      std::to_string(label) + ", but the model" + expected +
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
    const std::uint64_t most = std::min(scratch.order.size() - i, source_->end_of_file(first) - first);
    std::uint64_t count = 1;
    while (count < most && options_.begin + indices[scratch.order[i + count]] == first + count) ++count;
    if (Status ok = scratch.reader->read(first, count, draw, scratch.encoded); !ok) return ok;
    i += count;
  }
  return {};
}

// Evaluations read the records in order. Each record counts when the first of them reads it.
void StreamedDataset::note_unknown(std::span<const std::uint64_t> indices, const std::vector<Row>& rows) const {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < counted_) continue;
    counted_ = indices[i] + 1;
    const EncodedRows& from = *rows[i].rows;
    const std::uint64_t inputs = encoder_.has_pixels() ? 0 : encoder_.inputs();
    encoder_.count_unknown(from.inputs.data() + rows[i].row * inputs,
                           from.categories.data() + rows[i].row * encoder_.categories(), unknown_);
  }
}

std::vector<UnknownWords> StreamedDataset::unknown_words() const {
  const std::lock_guard lock(mutex_);
  return input::unknown_words(encoder_.unknown_names(), unknown_);
}

std::size_t StreamedDataset::block_of(std::uint64_t record) const {
  const auto after = std::upper_bound(options_.blocks.begin(), options_.blocks.end(), record);
  return static_cast<std::size_t>(after - options_.blocks.begin()) - 1;
}

// Each input thread first makes those missing blocks that no other thread makes. Then it waits for the others.
Status StreamedDataset::find_in_blocks(std::span<const std::uint64_t> indices, Scratch& scratch) const {
  std::vector<std::size_t>& wanted = scratch.blocks;
  wanted.clear();
  scratch.places.resize(options_.blocks.size(), kNoPlace);
  scratch.order.resize(indices.size());  // the block of each index, as its place in `wanted`
  std::size_t block = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::uint64_t record = options_.begin + indices[i];
    if (record < begin || record >= end) {
      block = block_of(record);
      begin = options_.blocks[block];
      end = end_of_block(block);
      if (scratch.places[block] == kNoPlace) {
        scratch.places[block] = static_cast<std::uint32_t>(wanted.size());
        wanted.push_back(block);
      }
    }
    scratch.order[i] = scratch.places[block];
  }
  for (const std::size_t one : wanted) scratch.places[one] = kNoPlace;
  scratch.held.assign(wanted.size(), nullptr);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Result<BlockOfRows> made = make_if_missing(wanted[i], scratch);
    if (!made) return tl::unexpected(std::move(made.error()));
    scratch.held[i] = std::move(*made);
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    while (scratch.held[i] == nullptr) {
      if (std::optional<Result<BlockOfRows>> found = blocks_.get(wanted[i])) {
        if (!*found) return tl::unexpected(found->error());
        scratch.held[i] = **found;
      } else {  // it was dropped again meanwhile
        Result<BlockOfRows> made = make_if_missing(wanted[i], scratch);
        if (!made) return tl::unexpected(std::move(made.error()));
        scratch.held[i] = std::move(*made);
      }
    }
  }
  scratch.rows.resize(indices.size());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::uint64_t record = options_.begin + indices[i];
    const std::uint32_t at = scratch.order[i];
    scratch.rows[i] = {scratch.held[at].get(), record - options_.blocks[wanted[at]]};
  }
  return {};
}

Result<BlockOfRows> StreamedDataset::make_if_missing(std::size_t number, Scratch& scratch) const {
  const std::uint64_t first = options_.blocks[number];
  const std::uint64_t records = end_of_block(number) - first;
  const Result<std::uint64_t> content = source_->content_bytes(first, records);
  if (!content) return tl::unexpected(content.error());
  if (!blocks_.claim(number, encoder_.most_bytes(records, *content))) return BlockOfRows();
  Result<BlockOfRows> made = [&]() -> Result<BlockOfRows> {
    try {
      return make_block(number, scratch);
    } catch (const std::bad_alloc&) {
      return fail(ErrorCode::kConfig,
                  source_->place_of(options_.blocks[number]) +
                      ": its block of records needs more memory than this host has: lower data.memory");
    }
  }();
  blocks_.put(number, made);
  return made;
}

Result<BlockOfRows> StreamedDataset::make_block(std::size_t number, Scratch& scratch) const {
  const std::uint64_t first = options_.blocks[number];
  std::unique_ptr<EncodedRows> rows = spares_.take();
  const Status ok = scratch.reader->read(first, end_of_block(number) - first, {}, *rows);
  if (!ok) return tl::unexpected(ok.error());
  return spares_.keep(std::move(rows));
}

std::uint64_t StreamedDataset::end_of_block(std::size_t number) const {
  return number + 1 < options_.blocks.size() ? options_.blocks[number + 1] : source_->records();
}

Status StreamedDataset::preload(const IsCancelled& is_cancelled) const {
  DISTTRAIN_CHECK(options_.keeps_blocks);
  const std::size_t end = block_of(options_.end - 1) + 1;
  std::atomic<std::size_t> next = block_of(options_.begin);
  std::mutex mutex;
  std::optional<Error> error;  // the mutex guards it
  const auto work = [&] {
    use_crash_stack();
    std::unique_ptr<Scratch> scratch = take_scratch();
    for (std::size_t block = next++; block < end; block = next++) {
      Result<BlockOfRows> made = is_cancelled && is_cancelled()
                                     ? fail(ErrorCode::kTemporary, source_->place_of(options_.begin) + ": cancelled")
                                     : make_if_missing(block, *scratch);
      if (made) continue;
      next = end;
      const std::lock_guard lock(mutex);
      if (!error) error = made.error();
    }
    give_back(std::move(scratch));
  };
  {
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    const std::size_t wanted = std::min({end - next, cores, kMaxReaderThreads});
    const auto others = start_threads(std::max<std::size_t>(wanted, 1) - 1, work);
    work();
  }
  if (error) return tl::unexpected(std::move(*error));
  return {};
}

}  // namespace disttrain::input
