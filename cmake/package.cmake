# `make package`: a .deb whose dependencies Debian resolves, and an archive that brings its libraries along (all but glibc's, so it
# runs on Debian 12 and what is newer). Neither needs a compiler to run a network; scripts/check_package.sh tests both.

# What is packed is the target `tenon` and its runtime, not the tests.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

# Where the program's libraries are looked for holds for the libraries of these too.
target_link_options(tenon PRIVATE -Wl,--disable-new-dtags)

# Of the archive alone: what the compiler is linked with lies beside it, in a folder `lib` because LLVM's library looks for its own
# in $ORIGIN/../lib. Debian's dpkg knows these as dependencies.
install(CODE "
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES $<TARGET_FILE:tenon> RESOLVED_DEPENDENCIES_VAR libraries
       PRE_EXCLUDE_REGEXES \"^(ld-linux|linux-vdso|lib(c|m|dl|rt|pthread|resolv)\\\\.so)\")
  file(INSTALL \${libraries} DESTINATION \${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/tenon/lib FOLLOW_SYMLINK_CHAIN)"
  COMPONENT bundle EXCLUDE_FROM_ALL)

set(CPACK_PACKAGE_NAME tenon)
set(CPACK_PACKAGE_VENDOR "the authors of Tenon")
set(CPACK_PACKAGE_CONTACT "the authors of Tenon <tenon@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "machine-learning compiler for networks, kernels and libraries")
set(CPACK_PACKAGE_DESCRIPTION
    "Compiles ONNX networks, TVMScript modules and Relay text, joined with hand-written kernels and foreign libraries, to a running
function, a shared library or freestanding C.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME tenon-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_OUTPUT_FILE_PREFIX ${PROJECT_BINARY_DIR}/package)
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)  # libtenon.so; the linker's cache is made anew
# Found through its link in /usr/lib/llvm-19, which dpkg-shlibdeps does not follow to the package.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libllvm19 (>= 1:19.1)")
# For --target c, C files of --link, and back ends that answer in C; for --libs.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gcc, libc6-dev")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libdnnl2, libopenblas0-pthread")
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/package_of_generator.cmake)
include(CPack)
