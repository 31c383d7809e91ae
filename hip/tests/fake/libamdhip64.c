/* A libamdhip64 for tests: it has FAKE_DEVICES devices, and says which of its functions were called. */
#include <stdio.h>
#include <stdlib.h>

static int calls;
static int last_error;

static int said(const char* call, int code) {
    printf("fake: %s\n", call);
    fflush(stdout);
    ++calls;
    if (code) last_error = code;
    return code;
}

int hipGetDeviceCount(int* count) {
    const char* devices = getenv("FAKE_DEVICES");
    *count = devices ? atoi(devices) : 1;
    return *count ? 0 : 100;
}

int hipGetDevice(int* device) {
    *device = 0;
    return said("hipGetDevice", 0);
}

int hipMalloc(void** pointer, size_t size) {
    int device;
    /* Has to reach the function above, whatever else in the process has that name. */
    hipGetDevice(&device);
    *pointer = (void*)0xabc000;
    return said(size == 64 ? "hipMalloc 64" : "hipMalloc of a wrong size", 0);
}

int hipFree(void* pointer) { return said(pointer == (void*)0xabc000 ? "hipFree 0xabc000" : "hipFree of a wrong address", 17); }

int hipModuleLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned lds, void* stream, void** params, void** extra) {
    char call[200];
    snprintf(call, sizeof call, "hipModuleLaunchKernel %p (%u, %u, %u) (%u, %u, %u) %u %p %p %p", f, gx, gy, gz, bx, by,
             bz, lds, stream, (void*)params, (void*)extra);
    return said(call, 0);
}

int hipGetLastError(void) {
    int code = last_error;
    last_error = 0;
    return code;
}

/* A function that the library under test knows by name alone: arguments in every kind of place. */
int hipMemcpy3DPeer(long a, double b, long c, float d, long e, long f, long g, long h, long i, double j, short k) {
    char call[200];
    snprintf(call, sizeof call, "hipMemcpy3DPeer %ld %g %ld %g %ld %ld %ld %ld %ld %g %d", a, b, c, (double)d, e, f, g, h,
             i, j, k);
    return said(call, 12);
}

/* Properties in HIP 5's layout alone, as HIP 5 has them: the fields that the test looks at, at that layout's offsets. */
int hipGetDeviceProperties(char* properties, int device) {
    size_t memory = 16368ul << 20, lds = 65536;
    int wave = 32, units = 30, threads = 1024;
    if (device) return said("hipGetDeviceProperties of a wrong device", 101);
    snprintf(properties, 256, "AMD Radeon RX 7800 XT");
    *(size_t*)(properties + 256) = memory;
    *(size_t*)(properties + 264) = lds;
    *(int*)(properties + 276) = wave;
    *(int*)(properties + 280) = threads;
    *(int*)(properties + 336) = units;
    snprintf(properties + 396, 256, "gfx1101");
    return said("hipGetDeviceProperties", 0);
}

int hipDeviceGetAttribute(int* value, unsigned attribute, int device) {
    char call[60];
    snprintf(call, sizeof call, "hipDeviceGetAttribute %u", attribute);
    *value = device + 1;
    return said(call, 0);
}

/* Graphs, and structs that are passed by value. */
int hipStreamBeginCapture(void* stream, int mode) {
    char call[60];
    snprintf(call, sizeof call, "hipStreamBeginCapture %p %d", stream, mode);
    return said(call, 0);
}

int hipGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) {
    char call[80];
    snprintf(call, sizeof call, "hipGraphInstantiateWithFlags %p %llu", graph, flags);
    *exec = (void*)0x99;
    return said(call, 0);
}

struct pitched { void* ptr; size_t pitch, xsize, ysize; };
struct extent { size_t width, height, depth; };

int hipMemset3D(struct pitched p, int value, struct extent e) {
    char call[120];
    snprintf(call, sizeof call, "hipMemset3D %p %zu %zu %zu %d %zu %zu %zu", p.ptr, p.pitch, p.xsize, p.ysize, value, e.width,
             e.height, e.depth);
    return said(call, 1);
}

struct channels { int x, y, z, w, f; };

int hipMalloc3DArray(void** array, const struct channels* c, struct extent e, unsigned flags) {
    char call[120];
    snprintf(call, sizeof call, "hipMalloc3DArray %d %d %d %d %d %zu %zu %zu %u", c->x, c->y, c->z, c->w, c->f, e.width, e.height,
             e.depth, flags);
    *array = (void*)0xaaa;
    return said(call, 0);
}

int hipMemcpy2DToArray(void* array, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height, int kind) {
    char call[120];
    snprintf(call, sizeof call, "hipMemcpy2DToArray %p %zu %zu %p %zu %zu %zu %d", array, x, y, from, pitch, width, height, kind);
    return said(call, 21);
}

struct handle { unsigned char bytes[64]; };

int hipIpcOpenMemHandle(void** pointer, struct handle handle, unsigned flags) {
    char call[80];
    snprintf(call, sizeof call, "hipIpcOpenMemHandle %d %d %u", handle.bytes[0], handle.bytes[63], flags);
    *pointer = (void*)0xdef000;
    return said(call, 0);
}
