// A checkpoint keeps the words, means and deviations of [data.columns] that were found in the training set. With
// them `disttrain predict` encodes records without the training files. Of csv files without [data.columns] it keeps the
// labels and the header (kept_csv.h). The worker that describes a job encodes them, and the chief writes them into each
// checkpoint, as the file columns.cbor beside the manifest.
//
// The file is CBOR (RFC 8949), because words may be any bytes, which JSON doesn't allow.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/checkpoint/job_folder.h"
#include "common/checkpoint/manifest.h"
#include "common/result.h"

namespace disttrain::checkpoint {

inline constexpr const char* kColumnsName = "columns.cbor";

// One of [data.columns], with either words or numbers, or one of kept_csv.h, whose list of words may be empty.
struct KeptColumn {
  std::string name;  // "": of kept_csv.h
  // Those of a category or a label. Tokens have one word: a hash of the tokenizer's file.
  std::vector<std::string> words;
  double mean = 0.0;
  double deviation = 1.0;   // above 0
  bool are_classes = true;  // a label without words: its numbers are whole and at least 0
  bool are_whole = true;    // a label without words: its numbers are whole
  double smallest = 0.0;    // a label without words
  double largest = 0.0;

  bool operator==(const KeptColumn&) const = default;
};

// "" if decode_columns() would refuse the bytes, because there are too many words (kMaxCborValues).
std::string encode_columns(const std::vector<KeptColumn>& columns);
// Checks everything. `path` is used only in messages. Errors, kData: `bytes` is damaged.
Result<std::vector<KeptColumn>> decode_columns(const std::string& bytes, const std::string& path);

// Whether a job whose data gives `found` may go on from a checkpoint with `kept`. Words must be the same, because
// parameters depend on their numbers. A mean may move by 1 % of the deviation, and a deviation by 1 %: other files with
// the same records give slightly other sums. Returns the first column that differs, or none.
std::optional<std::string> differing_column(const std::vector<KeptColumn>& kept, const std::vector<KeptColumn>& found);

// Writes and syncs the file in the folder of an attempt. Returns its entry for the manifest. The caller syncs the
// folder.
Result<FileEntry> keep_columns(Files& files, const std::string& folder, const std::string& bytes);

// The columns that the checkpoint keeps. None: an older checkpoint, or one of a job without [data.columns] and without
// csv files (kept_csv.h), or with words beyond kMaxKeptColumnsBytes. Errors, kData: the file is damaged.
Result<std::optional<std::vector<KeptColumn>>> kept_columns(Files& files, const OpenCheckpoint& checkpoint);

}  // namespace disttrain::checkpoint
