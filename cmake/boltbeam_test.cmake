# boltbeam_test(NAME FILE... [PROGRAM] [PREFIX prefix] [LABELS label...] [LIBS lib...]): one GoogleTest program and its
# CTest entry.
# PROGRAM: it runs the real binary, whose path is BOLTBEAM_PROGRAM. PREFIX: of the names that CTest shows.
# Fast tests carry no label. One of: slow; timing (measures time, and may be disturbed); real (needs a real model).
include(GoogleTest)
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
