// Compiles StableHLO programs for a client's device, and runs them on arrays in host memory.
//
// All functions block their caller. One thread at a time may use a client and what was made with it, and the client
// outlives the rest. Errors of the plugin are kFailed: out of memory, or an operation that the device can't do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "engine/pjrt/plugin.h"

namespace disttrain::workerd::pjrt {

// The type of an array. Its elements are row-major.
struct ArrayType {
  abi::ElementType element = abi::kInvalidType;
  std::vector<std::int64_t> dims;  // {}: a single value

  bool operator==(const ArrayType&) const = default;
};

// "float32[64, 10]".
std::string to_string(const ArrayType& type);

// A copy from the device to host memory that is under way. Move-only. Its end waits for the copy, so that nothing
// writes to the destination any more.
class PendingRead {
 public:
  PendingRead(const Plugin& plugin, abi::Event* event) : plugin_(&plugin), event_(event) {}
  PendingRead(PendingRead&& other) noexcept : plugin_(other.plugin_), event_(std::exchange(other.event_, nullptr)) {}
  PendingRead& operator=(PendingRead&&) = delete;
  ~PendingRead();

  // Waits until the destination has the values. At most one call.
  Status wait();

 private:
  const Plugin* plugin_;
  abi::Event* event_;  // null after wait()
};

// An array on the device.
class Buffer {
 public:
  // Makes an array of the `data`, which has as many bytes as the type says. A device that shares the host's memory,
  // such as the CPU, reads `data` in place if it is aligned well (XLA's CPU: at 64 bytes). So `data` must stay valid
  // and unchanged until the buffer's end.
  static Result<Buffer> of(const Client& client, const ArrayType& type, std::span<const std::byte> data);

  abi::Buffer* get() const { return handle_.get(); }

  // Starts to copy the array to `destination`, which must have room for it and stay valid until the copy has ended. The
  // buffer must live until then too.
  Result<PendingRead> start_read(std::span<std::byte> destination) const;
  // Copies the array to `destination`.
  Status read(std::span<std::byte> destination) const;

 private:
  friend class Executable;
  Buffer(const Plugin& plugin, abi::Buffer* buffer) : plugin_(&plugin), handle_(plugin, buffer) {}

  const Plugin* plugin_;
  BufferHandle handle_;
};

// A compiled program. It has no memory between its runs.
class Executable {
 public:
  // `code` is StableHLO: MLIR's text, MLIR's bytecode, or a portable artifact. Compiling takes from 50 ms for a small
  // program to minutes for a large one. `name` appears in errors. Errors: kConfig if the plugin refuses the program.
  static Result<std::unique_ptr<Executable>> compile(const Client& client, std::span<const char> code,
                                                     const std::string& name);

  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const std::vector<ArrayType>& outputs() const { return outputs_; }

  // Runs the program, waits for its end, and returns its outputs in order. Afterwards the device doesn't read the
  // inputs any more. The program doesn't reuse their memory for its outputs.
  Result<std::vector<Buffer>> run(std::span<const Buffer* const> inputs);

 private:
  Executable(const Client& client, abi::LoadedExecutable* loaded, std::string name)
      : client_(client), loaded_(client.plugin(), loaded), name_(std::move(name)) {}

  Status read_output_types();

  const Client& client_;
  const LoadedExecutableHandle loaded_;
  const std::string name_;
  std::vector<ArrayType> outputs_;
};

}  // namespace disttrain::workerd::pjrt
