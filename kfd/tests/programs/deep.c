/* Counts the devices of a libamdhip64 that finds its own functions, and those of the libraries under it, before all others. Not linked
   with it: what is loaded at the start has no scope of its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    void* library = dlopen("libamdhip64.so.5", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!library) return printf("%s\n", dlerror()), 1;
    int (*count_devices)(int*) = (int (*)(int*))dlsym(library, "hipGetDeviceCount");
    int count = -1, code = count_devices(&count);
    printf("code %d, count %d\n", code, count);
    return 0;
}
