// Copies in two and three dimensions by the driver's functions, and what is said of a pointer: HIP 5 and 6 lay these structures
// out differently, and number types of memory differently.
#include "check.h"
#include <cstring>

int main() {
    const int width = 5, height = 3, depth = 2, pitch = 16, slices = 4;
    std::vector<int> in(width * height * depth);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i) + 1;
    char* device;
    CHECK(hipMalloc(&device, pitch * sizeof(int) * slices * (depth + 1)));
    CHECK(hipMemset(device, 0, pitch * sizeof(int) * slices * (depth + 1)));

    // In, to (2, 1, 1) of slices of four rows of 16.
    HIP_MEMCPY3D copy;
    std::memset(&copy, 0, sizeof copy);
    copy.srcMemoryType = hipMemoryTypeHost;
    copy.srcHost = in.data();
    copy.srcPitch = width * sizeof(int);
    copy.srcHeight = height;
    copy.dstMemoryType = hipMemoryTypeDevice;
    copy.dstDevice = device;
    copy.dstPitch = pitch * sizeof(int);
    copy.dstHeight = slices;
    copy.dstXInBytes = 2 * sizeof(int);
    copy.dstY = 1;
    copy.dstZ = 1;
    copy.WidthInBytes = width * sizeof(int);
    copy.Height = height;
    copy.Depth = depth;
    CHECK(hipDrvMemcpy3D(&copy));
    std::vector<int> all(pitch * slices * (depth + 1));
    CHECK(hipMemcpy(all.data(), device, all.size() * sizeof(int), hipMemcpyDeviceToHost));
    for (int z = 0; z < depth; ++z)
        for (int y = 0; y < height; ++y)
            for (int x = 0; x < width; ++x)
                EXPECT(all[((z + 1) * slices + y + 1) * pitch + x + 2] == in[(z * height + y) * width + x]);
    EXPECT(all[0] == 0 && all[(slices + 1) * pitch + 1] == 0 && all[(slices + 1) * pitch + 7] == 0);

    // Rows of the second slice, out.
    std::vector<int> rows(width * height);
    hip_Memcpy2D part;
    std::memset(&part, 0, sizeof part);
    part.srcMemoryType = hipMemoryTypeDevice;
    part.srcDevice = device + slices * pitch * sizeof(int);
    part.srcPitch = pitch * sizeof(int);
    part.srcXInBytes = 2 * sizeof(int);
    part.srcY = 1;
    part.dstMemoryType = hipMemoryTypeHost;
    part.dstHost = rows.data();
    part.dstPitch = width * sizeof(int);
    part.WidthInBytes = width * sizeof(int);
    part.Height = height;
    CHECK(hipMemcpyParam2D(&part));
    for (int i = 0; i < width * height; ++i) EXPECT(rows[i] == in[i]);

    int* host;
    CHECK(hipHostMalloc(reinterpret_cast<void**>(&host), 64, 0));
    hipPointerAttribute_t of_device, of_host;
    CHECK(hipPointerGetAttributes(&of_device, device));
    CHECK(hipPointerGetAttributes(&of_host, host));
#if HIP_VERSION_MAJOR >= 6
    EXPECT(of_device.type == hipMemoryTypeDevice && of_host.type == hipMemoryTypeHost);
#else
    EXPECT(of_device.memoryType == hipMemoryTypeDevice && of_host.memoryType == hipMemoryTypeHost);
    EXPECT(hipPointerGetAttributes(&of_host, in.data()) == hipErrorInvalidValue);
#endif
    CHECK(hipHostFree(host));
    CHECK(hipFree(device));
    return passed("copies");
}
