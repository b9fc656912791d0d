# boltbeam_test(NAME FILE... [PROGRAM] [PREFIX prefix] [LABELS label...] [LIBS lib...]): one GoogleTest program and its
# CTest entry.
# PROGRAM: it runs the real binary, whose path is BOLTBEAM_PROGRAM. PREFIX: of the names that CTest shows.
# Fast tests carry no label. One of: slow; timing (measures time, and may be disturbed); real (needs a real model).
include(GoogleTest)
# What all tests share of precompiled headers belongs to a program that is never linked.
if(BOLTBEAM_TESTS AND BOLTBEAM_PCH)
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/test_headers.cc" CONTENT "int main() {}\n")
  add_executable(boltbeam_test_headers EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/test_headers.cc")
  target_link_libraries(boltbeam_test_headers PRIVATE boltbeam_options fmt::fmt nlohmann_json::nlohmann_json
                                                      GTest::gtest)
  boltbeam_pch(boltbeam_test_headers <gtest/gtest.h>)
endif()
function(boltbeam_test name)
  if(NOT BOLTBEAM_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "PROGRAM" "PREFIX" "LABELS;LIBS" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE boltbeam_lib boltbeam_options GTest::gtest_main ${arg_LIBS})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")  # what tests of several modules share
  target_compile_definitions(
    ${name} PRIVATE BOLTBEAM_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data" BOLTBEAM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(BOLTBEAM_PCH)
    target_precompile_headers(${name} REUSE_FROM boltbeam_test_headers)
    target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  endif()
  if(arg_PROGRAM)
    target_compile_definitions(${name} PRIVATE BOLTBEAM_PROGRAM="$<TARGET_FILE:boltbeam>")
    add_dependencies(${name} boltbeam)
  endif()
  gtest_discover_tests(
    ${name}
    TEST_PREFIX "${arg_PREFIX}"
    PROPERTIES LABELS "${arg_LABELS}"
    DISCOVERY_TIMEOUT 60)
endfunction()
