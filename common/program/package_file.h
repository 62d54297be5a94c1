// Reads the members of a zip file that are stored without compression. PyTorch's packages (.pt2, .pt) are such files,
// and so are the packages of our own exporters. The format is in PKWARE's APPNOTE.TXT; the comments give its sections.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/result.h"

namespace disttrain::program {

inline constexpr std::uint64_t kMaxDirectoryBytes = 64 * 1024 * 1024;  // of a zip file's table of its members

// A member's name, and where its bytes are in the file.
struct Member {
  std::string name;
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stored_bytes = 0;  // in the file; equal to `bytes` if is_stored
  std::uint32_t checksum = 0;      // CRC-32 of the content
  bool is_stored = true;           // without compression and encryption; only such members can be read
  bool is_deflated = false;        // compressed by deflate, and not encrypted
};

// Keeps the file open. One thread at a time. All errors name the file. Neither open() nor the reads trust any number of
// the file.
class PackageFile {
 public:
  // Fails with kNoInput if the file doesn't exist, and with kData if it is truncated or isn't a zip file.
  static Result<PackageFile> open(checkpoint::Files& files, const std::string& path);

  const std::string& path() const { return path_; }

  // The member whose name is `name`, or ends with "/" and `name`. Null if there is none. PyTorch puts all members into
  // a folder with a name of its choice.
  const Member* find(const std::string& name) const;
  const std::vector<Member>& members() const { return members_; }

  // Reads a whole member and compares its checksum. Fails with kData if the member is compressed, has more than
  // `max_bytes`, or is damaged.
  Result<std::string> read(const Member& member, std::uint64_t max_bytes);

  // The bytes of a member as a file of its own, valid as long as this object. Its reads compare no checksum.
  Result<std::unique_ptr<checkpoint::InputFile>> open_member(const Member& member);

  // Compares the checksum of a member that may be large, or compressed by deflate. Fails with kData if it differs.
  Status verify(const Member& member);

  // Reads a whole member that may be compressed by deflate, and compares its checksum. Fails as read() does.
  Result<std::string> unpack(const Member& member, std::uint64_t max_bytes);

 private:
  PackageFile(std::string path, std::unique_ptr<checkpoint::InputFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}
  Status read_directory();
  // Fills in the places of members' bytes from their local headers.
  Status locate(Member& member);
  // Members that share bytes would let a small file take the time of a huge one.
  Status check_apart() const;
  // Gives the content of a member to `take`, piece by piece, and compares its checksum.
  Status read_pieces(const Member& member, const std::function<void(std::span<const unsigned char>)>& take);

  std::string path_;
  std::unique_ptr<checkpoint::InputFile> file_;
  std::vector<Member> members_;
};

}  // namespace disttrain::program
