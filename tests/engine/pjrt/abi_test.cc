// Compares our declarations of the PJRT C API with OpenXLA's own header, which tools/setup installs for tests.
#include "engine/pjrt/abi.h"

#include <gtest/gtest.h>

#if __has_include(<pjrt_c_api.h>)

#include <pjrt_c_api.h>

namespace disttrain::workerd::pjrt {
namespace {

// The index of a function in the table.
#define INDEX_OF(function) ((offsetof(PJRT_Api, function) - offsetof(PJRT_Api, PJRT_Error_Destroy)) / sizeof(void*))

TEST(PjrtAbi, FunctionsAreAtTheirPlaces) {
  EXPECT_EQ(abi::kMajorVersion, PJRT_API_MAJOR);
  EXPECT_EQ(abi::kMinorVersion, PJRT_API_MINOR);
  EXPECT_EQ(offsetof(abi::Api, functions), offsetof(PJRT_Api, PJRT_Error_Destroy));
  EXPECT_EQ(offsetof(abi::Api, version), offsetof(PJRT_Api, pjrt_api_version));
  EXPECT_EQ(abi::kErrorDestroy, INDEX_OF(PJRT_Error_Destroy));
  EXPECT_EQ(abi::kErrorMessage, INDEX_OF(PJRT_Error_Message));
  EXPECT_EQ(abi::kErrorGetCode, INDEX_OF(PJRT_Error_GetCode));
  EXPECT_EQ(abi::kPluginInitialize, INDEX_OF(PJRT_Plugin_Initialize));
  EXPECT_EQ(abi::kEventDestroy, INDEX_OF(PJRT_Event_Destroy));
  EXPECT_EQ(abi::kEventAwait, INDEX_OF(PJRT_Event_Await));
  EXPECT_EQ(abi::kClientCreate, INDEX_OF(PJRT_Client_Create));
  EXPECT_EQ(abi::kClientDestroy, INDEX_OF(PJRT_Client_Destroy));
  EXPECT_EQ(abi::kClientPlatformName, INDEX_OF(PJRT_Client_PlatformName));
  EXPECT_EQ(abi::kClientAddressableDevices, INDEX_OF(PJRT_Client_AddressableDevices));
  EXPECT_EQ(abi::kClientCompile, INDEX_OF(PJRT_Client_Compile));
  EXPECT_EQ(abi::kClientBufferFromHostBuffer, INDEX_OF(PJRT_Client_BufferFromHostBuffer));
  EXPECT_EQ(abi::kExecutableDestroy, INDEX_OF(PJRT_Executable_Destroy));
  EXPECT_EQ(abi::kExecutableNumOutputs, INDEX_OF(PJRT_Executable_NumOutputs));
  EXPECT_EQ(abi::kLoadedExecutableDestroy, INDEX_OF(PJRT_LoadedExecutable_Destroy));
  EXPECT_EQ(abi::kLoadedExecutableGetExecutable, INDEX_OF(PJRT_LoadedExecutable_GetExecutable));
  EXPECT_EQ(abi::kLoadedExecutableExecute, INDEX_OF(PJRT_LoadedExecutable_Execute));
  EXPECT_EQ(abi::kBufferDestroy, INDEX_OF(PJRT_Buffer_Destroy));
  EXPECT_EQ(abi::kBufferToHostBuffer, INDEX_OF(PJRT_Buffer_ToHostBuffer));
  EXPECT_EQ(abi::kExecutableOutputElementTypes, INDEX_OF(PJRT_Executable_OutputElementTypes));
  EXPECT_EQ(abi::kExecutableOutputDimensions, INDEX_OF(PJRT_Executable_OutputDimensions));
  EXPECT_EQ(std::size_t{abi::kFunctions}, INDEX_OF(PJRT_Executable_OutputDimensions) + 1);
}

TEST(PjrtAbi, StructsHaveTheSameSizes) {
  EXPECT_EQ(sizeof(abi::Version), sizeof(PJRT_Api_Version));
  EXPECT_EQ(sizeof(abi::ErrorDestroyArgs), sizeof(PJRT_Error_Destroy_Args));
  EXPECT_EQ(sizeof(abi::ErrorMessageArgs), sizeof(PJRT_Error_Message_Args));
  EXPECT_EQ(sizeof(abi::ErrorGetCodeArgs), sizeof(PJRT_Error_GetCode_Args));
  EXPECT_EQ(sizeof(abi::PluginInitializeArgs), sizeof(PJRT_Plugin_Initialize_Args));
  EXPECT_EQ(sizeof(abi::EventDestroyArgs), sizeof(PJRT_Event_Destroy_Args));
  EXPECT_EQ(sizeof(abi::EventAwaitArgs), sizeof(PJRT_Event_Await_Args));
  EXPECT_EQ(sizeof(abi::ClientCreateArgs), sizeof(PJRT_Client_Create_Args));
  EXPECT_EQ(sizeof(abi::ClientDestroyArgs), sizeof(PJRT_Client_Destroy_Args));
  EXPECT_EQ(sizeof(abi::ClientPlatformNameArgs), sizeof(PJRT_Client_PlatformName_Args));
  EXPECT_EQ(sizeof(abi::ClientAddressableDevicesArgs), sizeof(PJRT_Client_AddressableDevices_Args));
  EXPECT_EQ(sizeof(abi::Program), sizeof(PJRT_Program));
  EXPECT_EQ(sizeof(abi::ClientCompileArgs), sizeof(PJRT_Client_Compile_Args));
  EXPECT_EQ(sizeof(abi::ClientBufferFromHostBufferArgs), sizeof(PJRT_Client_BufferFromHostBuffer_Args));
  EXPECT_EQ(sizeof(abi::ExecuteOptions), sizeof(PJRT_ExecuteOptions));
  EXPECT_EQ(sizeof(abi::LoadedExecutableExecuteArgs), sizeof(PJRT_LoadedExecutable_Execute_Args));
  EXPECT_EQ(sizeof(abi::LoadedExecutableDestroyArgs), sizeof(PJRT_LoadedExecutable_Destroy_Args));
  EXPECT_EQ(sizeof(abi::LoadedExecutableGetExecutableArgs), sizeof(PJRT_LoadedExecutable_GetExecutable_Args));
  EXPECT_EQ(sizeof(abi::ExecutableDestroyArgs), sizeof(PJRT_Executable_Destroy_Args));
  EXPECT_EQ(sizeof(abi::ExecutableNumOutputsArgs), sizeof(PJRT_Executable_NumOutputs_Args));
  EXPECT_EQ(sizeof(abi::ExecutableOutputElementTypesArgs), sizeof(PJRT_Executable_OutputElementTypes_Args));
  EXPECT_EQ(sizeof(abi::ExecutableOutputDimensionsArgs), sizeof(PJRT_Executable_OutputDimensions_Args));
  EXPECT_EQ(sizeof(abi::BufferDestroyArgs), sizeof(PJRT_Buffer_Destroy_Args));
  EXPECT_EQ(sizeof(abi::BufferToHostBufferArgs), sizeof(PJRT_Buffer_ToHostBuffer_Args));
}

// The fields whose order a size can't tell.
TEST(PjrtAbi, FieldsAreAtTheirPlaces) {
  EXPECT_EQ(offsetof(abi::ClientCreateArgs, client), offsetof(PJRT_Client_Create_Args, client));
  EXPECT_EQ(offsetof(abi::ClientCompileArgs, program), offsetof(PJRT_Client_Compile_Args, program));
  EXPECT_EQ(offsetof(abi::ClientCompileArgs, options), offsetof(PJRT_Client_Compile_Args, compile_options));
  EXPECT_EQ(offsetof(abi::ClientCompileArgs, executable), offsetof(PJRT_Client_Compile_Args, executable));
  using Bring = abi::ClientBufferFromHostBufferArgs;
  using PjrtBring = PJRT_Client_BufferFromHostBuffer_Args;
  EXPECT_EQ(offsetof(Bring, data), offsetof(PjrtBring, data));
  EXPECT_EQ(offsetof(Bring, type), offsetof(PjrtBring, type));
  EXPECT_EQ(offsetof(Bring, dims), offsetof(PjrtBring, dims));
  EXPECT_EQ(offsetof(Bring, semantics), offsetof(PjrtBring, host_buffer_semantics));
  EXPECT_EQ(offsetof(Bring, device), offsetof(PjrtBring, device));
  EXPECT_EQ(offsetof(Bring, done_with_host_data), offsetof(PjrtBring, done_with_host_buffer));
  EXPECT_EQ(offsetof(Bring, buffer), offsetof(PjrtBring, buffer));
  EXPECT_EQ(offsetof(abi::ExecuteOptions, launch_id), offsetof(PJRT_ExecuteOptions, launch_id));
  EXPECT_EQ(offsetof(abi::ExecuteOptions, kept_inputs), offsetof(PJRT_ExecuteOptions, non_donatable_input_indices));
  using Execute = abi::LoadedExecutableExecuteArgs;
  using PjrtExecute = PJRT_LoadedExecutable_Execute_Args;
  EXPECT_EQ(offsetof(Execute, options), offsetof(PjrtExecute, options));
  EXPECT_EQ(offsetof(Execute, inputs), offsetof(PjrtExecute, argument_lists));
  EXPECT_EQ(offsetof(Execute, outputs), offsetof(PjrtExecute, output_lists));
  EXPECT_EQ(offsetof(Execute, device_complete_events), offsetof(PjrtExecute, device_complete_events));
  EXPECT_EQ(offsetof(abi::BufferToHostBufferArgs, destination), offsetof(PJRT_Buffer_ToHostBuffer_Args, dst));
  EXPECT_EQ(offsetof(abi::BufferToHostBufferArgs, event), offsetof(PJRT_Buffer_ToHostBuffer_Args, event));
}

TEST(PjrtAbi, NumbersAreTheSame) {
  EXPECT_EQ(int{abi::kResourceExhausted}, int{PJRT_Error_Code_RESOURCE_EXHAUSTED});
  EXPECT_EQ(int{abi::kInt32Type}, int{PJRT_Buffer_Type_S32});
  EXPECT_EQ(int{abi::kInt64Type}, int{PJRT_Buffer_Type_S64});
  EXPECT_EQ(int{abi::kUint8Type}, int{PJRT_Buffer_Type_U8});
  EXPECT_EQ(int{abi::kUint32Type}, int{PJRT_Buffer_Type_U32});
  EXPECT_EQ(int{abi::kFloat16Type}, int{PJRT_Buffer_Type_F16});
  EXPECT_EQ(int{abi::kFloat32Type}, int{PJRT_Buffer_Type_F32});
  EXPECT_EQ(int{abi::kFloat64Type}, int{PJRT_Buffer_Type_F64});
  EXPECT_EQ(int{abi::kBfloat16Type}, int{PJRT_Buffer_Type_BF16});
  EXPECT_EQ(int{abi::kImmutableZeroCopy}, int{PJRT_HostBufferSemantics_kImmutableZeroCopy});
}

}  // namespace
}  // namespace disttrain::workerd::pjrt

#else

TEST(PjrtAbi, DeclarationsEqualTheHeader) {
  GTEST_SKIP() << "OpenXLA's pjrt_c_api.h isn't installed; run tools/setup, then configure again";
}

#endif
