// The part of the PJRT C API that this room uses. PJRT is OpenXLA's interface to compilers and devices. A plugin is a
// shared library that implements it and exports one function, GetPjrtApi().
//
// These declarations follow version 0.81 of the C API, which OpenXLA's header describes
// (https://github.com/openxla/xla/blob/main/xla/pjrt/c/pjrt_c_api.h). They are our own, because Debian doesn't package
// that header, and they contain only what we call. tests/engine/pjrt/abi_test.cc compares sizes, offsets and
// numbers with the header, which tools/setup installs for tests.
//
// All argument structs begin with `struct_size`, by which the two sides find out which fields the other one knows.
// Later minor versions only append fields and functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace disttrain::workerd::pjrt::abi {

inline constexpr int kMajorVersion = 0;   // another major version has other structs
inline constexpr int kMinorVersion = 81;  // the version that these declarations follow

// Objects of the plugin.
struct Error;
struct Client;
struct Device;
struct Memory;
struct Event;
struct Buffer;
struct Executable;
struct LoadedExecutable;
struct Extension;

// The functions that we call, as indices of Api::functions. Each takes a pointer to its argument struct.
enum Function : std::size_t {
  kErrorDestroy = 0,  // returns void
  kErrorMessage = 1,  // returns void
  kErrorGetCode = 2,  // this function and all others return Error*, which is null if there was no error
  kPluginInitialize = 3,
  kEventDestroy = 5,
  kEventAwait = 8,
  kClientCreate = 10,
  kClientDestroy = 11,
  kClientPlatformName = 12,
  kClientAddressableDevices = 16,
  kClientCompile = 20,
  kClientBufferFromHostBuffer = 22,
  kExecutableDestroy = 40,
  kExecutableNumOutputs = 44,
  kLoadedExecutableDestroy = 50,
  kLoadedExecutableGetExecutable = 51,
  kLoadedExecutableExecute = 55,
  kBufferDestroy = 58,
  kBufferToHostBuffer = 70,
  kExecutableOutputElementTypes = 90,
  kExecutableOutputDimensions = 91,
  kFunctions = 92,  // the number of functions that a plugin must have
};

inline constexpr Function kUsedFunctions[] = {kErrorDestroy,
                                              kErrorMessage,
                                              kErrorGetCode,
                                              kPluginInitialize,
                                              kEventDestroy,
                                              kEventAwait,
                                              kClientCreate,
                                              kClientDestroy,
                                              kClientPlatformName,
                                              kClientAddressableDevices,
                                              kClientCompile,
                                              kClientBufferFromHostBuffer,
                                              kExecutableDestroy,
                                              kExecutableNumOutputs,
                                              kLoadedExecutableDestroy,
                                              kLoadedExecutableGetExecutable,
                                              kLoadedExecutableExecute,
                                              kBufferDestroy,
                                              kBufferToHostBuffer,
                                              kExecutableOutputElementTypes,
                                              kExecutableOutputDimensions};

struct Version {
  std::size_t struct_size;
  Extension* extensions;
  int major_version;
  int minor_version;
};

// The table of functions. The plugin owns it, and it stays valid until the process ends.
struct Api {
  std::size_t struct_size;  // tells how many functions there are
  Extension* extensions;
  Version version;
  void (*functions[kFunctions])();
};

using GetApi = const Api* (*)();

enum ErrorCode : int { kResourceExhausted = 8 };

struct ErrorDestroyArgs {
  std::size_t struct_size;
  Extension* extensions;
  Error* error;
};

struct ErrorMessageArgs {
  std::size_t struct_size;
  Extension* extensions;
  const Error* error;
  const char* message;  // out; as long as the error exists
  std::size_t message_size;
};

struct ErrorGetCodeArgs {
  std::size_t struct_size;
  Extension* extensions;
  const Error* error;
  ErrorCode code;  // out
};

struct PluginInitializeArgs {
  std::size_t struct_size;
  Extension* extensions;
};

struct EventDestroyArgs {
  std::size_t struct_size;
  Extension* extensions;
  Event* event;
};

struct EventAwaitArgs {
  std::size_t struct_size;
  Extension* extensions;
  Event* event;
};

struct ClientCreateArgs {
  std::size_t struct_size;
  Extension* extensions;
  const void* options;
  std::size_t option_count;
  void* callbacks[4];  // for clients of several processes: two functions, each with its argument
  Client* client;      // out
  void* more_callbacks[2];
};

struct ClientDestroyArgs {
  std::size_t struct_size;
  Extension* extensions;
  Client* client;
};

struct ClientPlatformNameArgs {
  std::size_t struct_size;
  Extension* extensions;
  Client* client;
  const char* name;  // out; as long as the client exists
  std::size_t name_size;
};

struct ClientAddressableDevicesArgs {
  std::size_t struct_size;
  Extension* extensions;
  Client* client;
  Device* const* devices;  // out; as long as the client exists
  std::size_t device_count;
};

struct Program {
  std::size_t struct_size;
  Extension* extensions;
  char* code;  // the plugin only reads it
  std::size_t code_size;
  const char* format;  // "mlir": StableHLO, as text or as bytecode
  std::size_t format_size;
};

struct ClientCompileArgs {
  std::size_t struct_size;
  Extension* extensions;
  Client* client;
  const Program* program;
  const char* options;  // a serialized xla.CompileOptionsProto
  std::size_t options_size;
  LoadedExecutable* executable;  // out
};

// The numbers of the types that a column, a variable or a result may have.
enum ElementType : int {
  kInvalidType = 0,
  kInt32Type = 4,
  kInt64Type = 5,
  kUint8Type = 6,
  kUint32Type = 8,
  kFloat16Type = 10,
  kFloat32Type = 11,
  kFloat64Type = 12,
  kBfloat16Type = 13,
};

enum HostBufferSemantics : int {
  kImmutableZeroCopy = 2,  // the buffer may use the caller's memory while the buffer exists, but doesn't write to it
};

struct ClientBufferFromHostBufferArgs {
  std::size_t struct_size;
  Extension* extensions;
  Client* client;
  const void* data;
  ElementType type;
  const std::int64_t* dims;
  std::size_t dim_count;
  const std::int64_t* byte_strides;  // null: row-major
  std::size_t byte_stride_count;
  HostBufferSemantics semantics;
  Device* device;
  Memory* memory;              // null: the device's default
  void* layout;                // null: row-major
  Event* done_with_host_data;  // out; the caller destroys it
  Buffer* buffer;              // out
};

struct ExecuteOptions {
  std::size_t struct_size;
  Extension* extensions;
  void* send_callbacks;
  void* recv_callbacks;
  std::size_t send_op_count;
  std::size_t recv_op_count;
  int launch_id;
  const std::int64_t* kept_inputs;  // indices of the inputs whose memory the program must not reuse for its outputs
  std::size_t kept_input_count;
  void* context;
  const char* call_location;
  std::size_t task_count;
  int* task_ids;
  std::int64_t* incarnation_ids;
};

struct LoadedExecutableExecuteArgs {
  std::size_t struct_size;
  Extension* extensions;
  LoadedExecutable* executable;
  ExecuteOptions* options;
  Buffer* const* const* inputs;  // [devices][inputs]
  std::size_t device_count;
  std::size_t input_count;
  Buffer** const* outputs;         // in/out; [devices][outputs]; the caller destroys the buffers
  Event** device_complete_events;  // in/out; [devices]; the caller destroys the events. Empty after an error
  Device* device;                  // null: the one that the program was compiled for
};

struct LoadedExecutableDestroyArgs {
  std::size_t struct_size;
  Extension* extensions;
  LoadedExecutable* executable;
};

struct LoadedExecutableGetExecutableArgs {
  std::size_t struct_size;
  Extension* extensions;
  LoadedExecutable* loaded_executable;
  Executable* executable;  // out; the caller destroys it
};

struct ExecutableDestroyArgs {
  std::size_t struct_size;
  Extension* extensions;
  Executable* executable;
};

struct ExecutableNumOutputsArgs {
  std::size_t struct_size;
  Extension* extensions;
  Executable* executable;
  std::size_t output_count;  // out
};

struct ExecutableOutputElementTypesArgs {
  std::size_t struct_size;
  Extension* extensions;
  Executable* executable;
  ElementType* types;  // out; as long as the executable exists
  std::size_t type_count;
};

struct ExecutableOutputDimensionsArgs {
  std::size_t struct_size;
  Extension* extensions;
  Executable* executable;
  std::size_t output_count;
  const std::int64_t* dims;       // out; the dimensions of all outputs, one output after the other
  const std::size_t* dim_counts;  // out; [output_count]
};

struct BufferDestroyArgs {
  std::size_t struct_size;
  Extension* extensions;
  Buffer* buffer;
};

struct BufferToHostBufferArgs {
  std::size_t struct_size;
  Extension* extensions;
  Buffer* source;
  void* layout;  // null: the layout that the buffer has
  void* destination;
  std::size_t destination_size;
  Event* event;  // out; the copy is complete; the caller destroys it
};

}  // namespace disttrain::workerd::pjrt::abi
