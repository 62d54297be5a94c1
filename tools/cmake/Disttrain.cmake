# Compiler settings and the helpers that every room uses:
# disttrain_library, disttrain_program, disttrain_test, disttrain_python_test.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# With line tables a crash names its line; with frame pointers perf can walk the stack.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -fno-omit-frame-pointer")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g -fno-omit-frame-pointer")

option(DISTTRAIN_QUICK "Build only the programs: no tests, manual pages, packages and line tables" OFF)
if(DISTTRAIN_QUICK)
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -fno-omit-frame-pointer")
endif()

# Most of a file's compile time goes into the headers that it includes. In a unity build a room's files share them.
# chiefd/chief.h alone takes 4.6 s. With unity builds, COLD rooms and a precompiled header for tests, tools/quickstart
# builds in 115 s (65 steps) instead of 399 s (283 steps), and takes 150 s instead of 560 s from the clone to the
# trained network (fresh Debian 12, 2 cores, no ccache). tools/test with an empty cache takes 12.6 minutes: 8 for the
# build and 5 for the tests.
#
# CMake's unity files name their sources by absolute paths. So in another clone ccache finds an object only after
# preprocessing: for two test programs this took 5 s, and compiling them 36 s of CPU time. Unity files of our own with
# relative paths would find them directly.
set(DISTTRAIN_UNITY OFF CACHE STRING "How many files of a room the compiler takes at once: OFF, a number, or 0 for all")
if(NOT DISTTRAIN_UNITY STREQUAL "OFF")
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE ${DISTTRAIN_UNITY})
  # g++ takes each .cc file but the unity file itself for a header, whose types others could see.
  add_compile_options(-Wno-subobject-linkage)
endif()

# g++ contracts a*b+c to an FMA where it can, by default. Without it, the bits of a result don't depend on the vector
# width that the machine has. See "Bits" in ARCHITECTURE.md.
add_compile_options(-ffp-contract=off -Wall -Wextra -Wpedantic -Wshadow -Werror)

set(DISTTRAIN_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")
set(DISTTRAIN_PATIENCE 1)  # factor on the tests' timeouts
if(DISTTRAIN_SANITIZE)
  set(DISTTRAIN_PATIENCE 4)
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1 -fno-omit-frame-pointer")  # line tables are enough for a report
  add_compile_options(-fsanitize=${DISTTRAIN_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DISTTRAIN_SANITIZE})
  if(DISTTRAIN_SANITIZE STREQUAL "thread")
    add_compile_options(-Wno-error=tsan)  # asio uses fences, which ThreadSanitizer doesn't support
  else()
    # AddressSanitizer reports null pointers anyway. Without these checks a build takes three quarters of the time.
    # In instrumented code g++ 12 gives false maybe-uninitialized warnings, as its manual says.
    add_compile_options(-fno-sanitize=null,vptr,object-size -Wno-maybe-uninitialized)
  endif()
  # Suppressions of findings in other libraries, each by name, with the reason. handle_segv=0, because our own crash
  # reports handle SIGSEGV.
  set(suppressions ${CMAKE_SOURCE_DIR}/tools/sanitizers)
  set(DISTTRAIN_TEST_ENVIRONMENT
      "DISTTRAIN_SANITIZE=${DISTTRAIN_SANITIZE}"
      "DISTTRAIN_PATIENCE=${DISTTRAIN_PATIENCE}"
      "ASAN_OPTIONS=handle_segv=0:detect_stack_use_after_return=1"
      "LSAN_OPTIONS=suppressions=\"${suppressions}/leaks\":print_suppressions=0"
      "UBSAN_OPTIONS=print_stacktrace=1"
      "TSAN_OPTIONS=handle_segv=0:suppressions=\"${suppressions}/races\":second_deadlock_stack=1")
endif()

# Debian's Python runs the tests, because tools/setup installs the packages that they import for it. Another python3 may
# come first in PATH.
if(EXISTS /usr/bin/python3)
  set(Python3_EXECUTABLE /usr/bin/python3)
endif()

# The code of a test needs less optimisation than the code that it tests.
set(DISTTRAIN_TEST_OPTIONS $<$<CONFIG:Release>:-O1>)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Relative paths in debug information let another clone or build folder use the same cache.
  add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=.)
  # A precompiled header needs these four kinds of sloppiness (ccache's manual, "Precompiled headers"). Without
  # -fpch-preprocess ccache compares the text that a file includes, so another clone's header does as well.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime)
  # In a list of dependencies, ccache doesn't find the base folder if its path is written with escapes. Other clones would
  # then get this clone's paths, and wouldn't compile again after an edit.
  if(CMAKE_SOURCE_DIR MATCHES "[^A-Za-z0-9/._+-]")
    list(APPEND CMAKE_CXX_COMPILER_LAUNCHER CCACHE_READONLY=1)
  endif()
  list(APPEND CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()

# Asio 1.22 allocates its handlers with aligned_alloc or operator new, depending on the headers before it. If two files
# differ, one frees with the wrong function. Without aligned_alloc all files agree.
add_compile_definitions(ASIO_DISABLE_STD_ALIGNED_ALLOC)

# Includes name files from the top of the tree, as in "common/result.h".
include_directories(${CMAKE_SOURCE_DIR})

find_package(Threads REQUIRED)
include(GNUInstallDirs)  # the folders of install(); each component is a package of the same name

# disttrain_library(NAME SOURCES file... [LINKS target...] [PRIVATE_LINKS target...] [COLD])
# A room's library. LINKS are the arrows of the room: its headers may include the headers of these targets. COLD: no
# step of training waits for its code, so the quick preset doesn't optimise it, which halves its compile time.
# Programs of `quick` may be slower by it: the linker may take a header's inline function from such a room. In one
# measurement, asynchronous training of a small net made 0.92 of the steps per second (one worker, median of 5 noisy
# rounds); whether such functions are the reason isn't known.
function(disttrain_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COLD" "" "SOURCES;LINKS;PRIVATE_LINKS")
  if(arg_SOURCES)
    add_library(${name} STATIC ${arg_SOURCES})
    target_link_libraries(${name} PUBLIC ${arg_LINKS} PRIVATE ${arg_PRIVATE_LINKS})
    if(arg_COLD AND DISTTRAIN_QUICK)
      target_compile_options(${name} PRIVATE -O0)
    endif()
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${arg_LINKS})
  endif()
endfunction()

# disttrain_schema(TARGET SCHEMA [IMPORTS schema...])
# Adds the C++ of a Cap'n Proto schema to a library, which alone sees it: "transport/wire/protocol.capnp.h". IMPORTS, from
# the top of the tree: schemas that it imports; their C++ is in a library that TARGET links.
find_package(CapnProto REQUIRED)
# Debian's package names wrong places for its tools.
find_program(CAPNP_COMPILER capnp REQUIRED)
find_program(CAPNP_CPP_GENERATOR capnpc-c++ REQUIRED)
set(DISTTRAIN_GENERATED ${CMAKE_BINARY_DIR}/generated)
function(disttrain_schema target schema)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "IMPORTS")
  list(TRANSFORM arg_IMPORTS PREPEND ${CMAKE_SOURCE_DIR}/)
  file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${schema})
  set(generated ${DISTTRAIN_GENERATED}/${path}.c++ ${DISTTRAIN_GENERATED}/${path}.h)
  add_custom_command(
    OUTPUT ${generated}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${DISTTRAIN_GENERATED}
    COMMAND ${CAPNP_COMPILER} compile -o${CAPNP_CPP_GENERATOR}:${DISTTRAIN_GENERATED}
            --src-prefix=${CMAKE_SOURCE_DIR} -I${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/${path}
    DEPENDS ${CMAKE_SOURCE_DIR}/${path} ${arg_IMPORTS}
    VERBATIM)
  set_source_files_properties(${generated} PROPERTIES COMPILE_OPTIONS -w)
  target_sources(${target} PRIVATE ${generated})
  target_include_directories(${target} SYSTEM PRIVATE ${DISTTRAIN_GENERATED})
  target_link_libraries(${target} PRIVATE CapnProto::capnp)
endfunction()

# disttrain_own_objects(file...): each of them has an object of its own in its room's library, also in a unity build.
# tests/sim replaces them one by one by what it plants bugs in; quickstart builds no tests.
# The linker would otherwise take a replaced file's neighbours from the room's object, too, and their names would be
# defined twice.
function(disttrain_own_objects)
  if(NOT DISTTRAIN_QUICK)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# disttrain_program(NAME SOURCES file... LINKS target... [COLD])
# The names of our functions are in it, for the stack that a crash leaves in the log. (ENABLE_EXPORTS would export other
# libraries' inline functions, too, which libtorch would then take for its own.)
function(disttrain_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COLD" "" "SOURCES;LINKS")
  add_executable(${name} ${arg_SOURCES})
  if(arg_COLD AND DISTTRAIN_QUICK)
    target_compile_options(${name} PRIVATE -O0)
  endif()
  target_link_libraries(${name} PRIVATE ${arg_LINKS})
  target_link_options(${name} PRIVATE "LINKER:--export-dynamic-symbol=*9disttrain*")
endfunction()

# disttrain_test(NAME SOURCES file... LINKS target... [LABELS label...] [TIMEOUT seconds])
# A GoogleTest program, which ctest runs as one test. It counts as skipped if it leaves a test out.
function(disttrain_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;LINKS;LABELS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${DISTTRAIN_PATIENCE}")
  foreach(half 0 1)
    if(name IN_LIST DISTTRAIN_SANITIZED_TESTS_${half})
      list(APPEND arg_LABELS sanitized_${half})
    endif()
  endforeach()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINKS} disttrain_test_main)
  target_compile_options(${name} PRIVATE ${DISTTRAIN_TEST_OPTIONS})
  target_precompile_headers(${name} REUSE_FROM disttrain_test_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}" SKIP_RETURN_CODE 77
                       ENVIRONMENT "${DISTTRAIN_TEST_ENVIRONMENT}")
endfunction()

# disttrain_python_test(NAME FILE [SERIAL] [LABELS label...] [TIMEOUT seconds] [COST seconds]
#                       [ENVIRONMENT VARIABLE=value...])
# A file of unittest in this folder. Where it leaves a test out it counts as skipped. SERIAL: nothing runs beside it.
# COST: about how long it takes; ctest starts the longest first, and knows it by itself from the second run on.
function(disttrain_python_test name file)
  cmake_parse_arguments(PARSE_ARGV 2 arg "SERIAL" "TIMEOUT;COST" "LABELS;ENVIRONMENT")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(NOT arg_COST)
    set(arg_COST 10)
  endif()
  math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${DISTTRAIN_PATIENCE}")
  # A test that isn't told where the build is runs none of its programs, so sanitizers have nothing to find in it.
  string(FIND "${arg_ENVIRONMENT}" "${CMAKE_BINARY_DIR}" names_build)
  string(FIND "${arg_ENVIRONMENT}" "$<TARGET_FILE" names_target)
  if(names_build EQUAL -1 AND names_target EQUAL -1)
    list(APPEND arg_LABELS no-program)
  endif()
  add_test(NAME ${name}
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/run_unittest.py ${CMAKE_CURRENT_SOURCE_DIR}/${file}
           WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}" SKIP_RETURN_CODE 77
                       RUN_SERIAL "${arg_SERIAL}" COST "${arg_COST}"
                       ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1;${DISTTRAIN_TEST_ENVIRONMENT};${arg_ENVIRONMENT}")
endfunction()

# build/bin is a link to the programs of preset release, or to those of tools/quickstart while release isn't built.
if(CMAKE_BINARY_DIR STREQUAL "${CMAKE_SOURCE_DIR}/build/release" OR
   (CMAKE_BINARY_DIR STREQUAL "${CMAKE_SOURCE_DIR}/build/quick" AND NOT EXISTS ${CMAKE_SOURCE_DIR}/build/release/bin/disttrain))
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  cmake_path(GET CMAKE_BINARY_DIR FILENAME preset)
  file(CREATE_LINK ${preset}/bin ${CMAKE_SOURCE_DIR}/build/bin SYMBOLIC)
endif()
