// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/guarded.h"

#include <cstdio>
#include <iostream>
#include <new>

#include "tenon/driver/usage.h"
#include "tenon/support/codes.h"
#include "tenon/support/mapped_file.h"

namespace tenon {

void print_error(std::string_view text) {
  std::fflush(stdout);
  std::cout.flush();
  std::cerr << text << (text.ends_with('\n') ? "" : "\n");
}

int guarded(const std::function<int()>& action) {
  try {
    const int status = action();
    check_mapped_files();
    std::cout.flush();
    std::fflush(stdout);
    if (std::cout.fail() || std::ferror(stdout)) {
      print_error("error: cannot write to the standard output");
      return kInputAtFault;
    }
    return status;
  } catch (const UsageError& error) {
    print_error(error.what());
    return kWrongUsage;
  } catch (const CompileError& error) {
    print_error(error.what());
    return kInputAtFault;
  } catch (const std::bad_alloc&) {
    print_error(fmt::format("error[{}]: out of memory", kLimitExceeded.id));
    return kInputAtFault;
  } catch (const std::exception& error) {
    print_error(fmt::format("internal error: {}\nThis is a fault of Tenon, not of the input.",
                            error.what()));
    return kInternal;
  }
}

}  // namespace tenon
