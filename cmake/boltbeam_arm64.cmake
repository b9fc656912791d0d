# boltbeam_arm64_runner(NAME FILE...): a program for arm64 Linux, of named files below the project's folder, whose path is
# in BOLTBEAM_ARM64_RUNNER afterwards; and qemu's emulator in BOLTBEAM_QEMU. Without a cross compiler the program is not
# made: tests then skip, and say so.
find_program(BOLTBEAM_QEMU qemu-aarch64 DOC "qemu's emulator of arm64 user programs")
find_program(BOLTBEAM_ARM64_CXX aarch64-linux-gnu-g++ DOC "a compiler for arm64 Linux")
function(boltbeam_arm64_runner name)
  set(program "${CMAKE_CURRENT_BINARY_DIR}/${name}.program")
  set(BOLTBEAM_ARM64_RUNNER
      "${program}"
      PARENT_SCOPE)
  if(NOT BOLTBEAM_ARM64_CXX)
    add_custom_target(${name})
    return()
  endif()
  # The system's headers are those of another machine; of {fmt} only the headers are needed.
  set(headers "${CMAKE_CURRENT_BINARY_DIR}/arm64_headers")
  file(MAKE_DIRECTORY "${headers}")
  get_target_property(folders fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  list(GET folders 0 folder)
  file(CREATE_LINK "${folder}/fmt" "${headers}/fmt" SYMBOLIC)
  list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE sources)
  add_custom_command(
    OUTPUT "${program}"
    COMMAND "${BOLTBEAM_ARM64_CXX}" -std=c++23 -O1 -static -Wall -Wextra -DFMT_HEADER_ONLY -isystem "${headers}"
            "-I${PROJECT_SOURCE_DIR}/src" "-I${PROJECT_SOURCE_DIR}/tests/kernels" ${sources} -o "${program}"
    DEPENDS ${sources} "${PROJECT_SOURCE_DIR}/tests/kernels/arm64_protocol.h"
    VERBATIM)
  add_custom_target(${name} DEPENDS "${program}")
endfunction()
