// Counts the devices of a libamdhip64 that finds its own functions, and those of the libraries under it, before all others.
#include <dlfcn.h>
#include <cstdio>

int main() {
    void* library = dlopen("libamdhip64.so.5", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!library) return std::printf("%s\n", dlerror()), 1;
    auto count_devices = reinterpret_cast<int (*)(int*)>(dlsym(library, "hipGetDeviceCount"));
    int count = -1, code = count_devices(&count);
    std::printf("code %d, count %d\n", code, count);
    return 0;
}
